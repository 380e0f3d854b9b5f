// Package certificate provides the node's client and serving certificates. It requests them
// from the API server with CertificateSigningRequests, renews them before they expire, and
// reloads them from files that another program renews.
package certificate
