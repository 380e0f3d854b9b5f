// Package server answers requests from outside: the HTTPS API for the API server and for
// monitoring, the optional read-only port, and the health check. Who may ask what is
// decided by the API server, and by nobody when that cannot be reached.
package server
