import sys

from victoryline_client.terminal import main

sys.exit(main())
