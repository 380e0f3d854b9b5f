package nftables

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	// chainDeleted is the kernel's message that a chain was deleted.
	chainDeleted = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELCHAIN
	// genHeader follows the header of every message: family, version, and two bytes more.
	genHeader = 4
	// attrHead is an attribute's length and type; two bits of the type are flags.
	attrHead = 4
	attrType = 1<<14 - 1
)

// Chain names a chain of the packet filter.
type Chain struct {
	Family uint8 // unix.AF_INET, …
	Table  string
	Name   string
}

// anyDeleted reports whether one of the messages says that a chain which match accepts was
// deleted. A message that is cut short may have said so.
func anyDeleted(messages []byte, match func(Chain) bool) bool {
	for len(messages) > 0 {
		if len(messages) < unix.SizeofNlMsghdr {
			return true
		}
		length := int(binary.NativeEndian.Uint32(messages))
		if length < unix.SizeofNlMsghdr || length > len(messages) {
			return true
		}
		kind, body := binary.NativeEndian.Uint16(messages[4:]), messages[unix.SizeofNlMsghdr:length]
		if kind == chainDeleted && len(body) >= genHeader && match(chainOf(body)) {
			return true
		}
		messages = messages[min(aligned(length), len(messages)):]
	}
	return false
}

// chainOf reads a message about a chain; names that are missing stay empty.
func chainOf(body []byte) Chain {
	chain := Chain{Family: body[0]}
	for attributes := body[genHeader:]; len(attributes) >= attrHead; {
		length, kind := int(binary.NativeEndian.Uint16(attributes)), binary.NativeEndian.Uint16(attributes[2:])
		if length < attrHead || length > len(attributes) {
			break
		}
		value, _, _ := bytes.Cut(attributes[attrHead:length], []byte{0})
		switch kind & attrType {
		case unix.NFTA_CHAIN_TABLE:
			chain.Table = string(value)
		case unix.NFTA_CHAIN_NAME:
			chain.Name = string(value)
		}
		attributes = attributes[min(aligned(length), len(attributes)):]
	}
	return chain
}

// aligned is where the next message or attribute begins.
func aligned(length int) int { return (length + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }
