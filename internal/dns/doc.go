// Package dns decides how a pod resolves names and what it is called: its resolver
// settings, its hostname and its hosts file.
package dns
