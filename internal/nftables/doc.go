// Package nftables reports when chains of the kernel's packet filter are deleted, whoever
// deletes them, so that those who need a chain can make it again at once.
package nftables
