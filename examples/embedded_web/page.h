/* What the server says. */
#ifndef PAGE_H
#define PAGE_H

#define PAGE                                                                                       \
    "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"                                           \
    "<!DOCTYPE html><title>Boiler</title><h1>Boiler 3</h1>"                                        \
    "<p>This page comes from a microcontroller. A thread asks its network card for frames, and a " \
    "few more threads answer the requests; a page of text decides which of them runs next.</p>"    \
    "<table><tr><th>flow<td>71 &deg;C<tr><th>return<td>58 &deg;C<tr><th>pressure<td>1.6 bar"       \
    "<tr><th>burner<td>on</table>\n"
#define PAGE_NOT_FOUND   "HTTP/1.0 404 Not Found\r\n\r\nno such page\n"
#define PAGE_NOT_ALLOWED "HTTP/1.0 405 Method Not Allowed\r\nAllow: GET\r\n\r\nonly GET\n"

#endif
