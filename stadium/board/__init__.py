"""A scoreboard that is only ever drawn: no JSON, pages that the server renders and a socket that pushes new markup."""
