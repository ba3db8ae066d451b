"""The scoreboard site (`/board`): server-rendered pages without JSON, and a WebSocket that pushes new markup."""
