"""Foretime's page in Open OnDemand: copy this folder to /var/www/ood/apps/sys/foretime.

Open OnDemand runs it as the user who looks, so the daemon knows them by its socket's peer and shows
their own jobs. It needs no package, and the daemon on this machine.
"""

import http.client
import os
import socket
import urllib.parse

SOCKET = os.environ.get("FORETIME_SOCKET", "/run/foretime/foretime.sock")
TIMEOUT_S = 60
# By these a browser says which page has it ask; the daemon refuses other sites' pages.
_OF_THE_BROWSER = ("Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest")
# What the browser need not be told of this one connection.
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding")


class _Daemon(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(SOCKET)


def application(environ, start_response):
    """Hand a GET on to the daemon, and its answer back (PEP 3333)."""
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return _say(start_response, "405 Method Not Allowed", "Only GET is answered here.")
    if not environ.get("PATH_INFO"):
        # Addresses on the page are relative to a folder.
        start_response("302 Found", [("Location", environ.get("SCRIPT_NAME", "") + "/")])
        return [b""]
    path = urllib.parse.quote(environ["PATH_INFO"], encoding="latin-1")
    if environ.get("QUERY_STRING"):
        path += "?" + environ["QUERY_STRING"]
    said = {}
    for name in _OF_THE_BROWSER:
        value = environ.get("HTTP_" + name.upper().replace("-", "_"))
        if value:
            said[name] = value
    daemon = _Daemon("localhost")
    try:
        daemon.request(environ["REQUEST_METHOD"], path, headers=said)
        answer = daemon.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        return _say(
            start_response,
            "503 Service Unavailable",
            "The foretime daemon does not answer on this machine; tell your administrator.",
        )
    finally:
        daemon.close()
    headers = [pair for pair in answer.getheaders() if pair[0].lower() not in _HOP_BY_HOP]
    start_response("%d %s" % (answer.status, answer.reason), headers)
    return [body]


def _say(start_response, status, text):
    body = text.encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(status, headers)
    return [body]
