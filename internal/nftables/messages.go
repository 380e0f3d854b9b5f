package nftables

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	// chainDeleted is the type of the message for a deleted chain.
	chainDeleted = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELCHAIN
	// genHeader is the size of nfgenmsg, which follows the header of every message: family,
	// version, and two more bytes.
	genHeader = 4
	// attrHead is the size of an attribute's length and type; two bits of the type are flags.
	attrHead = 4
	attrType = 1<<14 - 1
)

// Chain identifies a chain of the packet filter.
type Chain struct {
	Family uint8 // unix.AF_INET, …
	Table  string
	Name   string
}

// anyDeleted reports whether one of the messages is for the deletion of a chain that match
// accepts. It returns true for a truncated message, which may be one.
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

// chainOf parses a message about a chain; missing names stay empty.
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

// aligned is the offset of the next message or attribute.
func aligned(length int) int { return (length + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }
