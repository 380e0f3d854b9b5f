// Package dns computes a pod's resolver configuration, its hostname and its hosts file.
package dns
