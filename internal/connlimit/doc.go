// Package connlimit bounds the connections of clients that a server does not trust, of each source and of all
// together.
package connlimit
