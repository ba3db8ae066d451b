from victoryline_client.terminal import main

main()
