// Package nftables reports when any process deletes chains of the kernel's packet filter, so that
// the owner of a chain can create it again at once.
package nftables
