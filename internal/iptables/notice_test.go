package iptables

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func attribute(kind uint16, value string) []byte {
	data := binary.NativeEndian.AppendUint16(nil, uint16(attrHead+len(value)))
	data = append(binary.NativeEndian.AppendUint16(data, kind), value...)
	return append(data, make([]byte, aligned(len(data))-len(data))...)
}

// message is a message of nftables with these attributes.
func message(kind uint16, family byte, attributes ...[]byte) []byte {
	body := slices.Concat(append([][]byte{{family, 0, 0, 0}}, attributes...)...)
	data := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	data = binary.NativeEndian.AppendUint16(data, unix.NFNL_SUBSYS_NFTABLES<<8|kind)
	return append(append(data, make([]byte, unix.SizeofNlMsghdr-len(data))...), body...)
}

func TestCanaryDeleted(t *testing.T) {
	table := attribute(1, "mangle\x00")
	name := attribute(unix.NFTA_CHAIN_NAME, canary+"\x00")
	other := message(unix.NFT_MSG_DELCHAIN, familyIPv4, table, attribute(unix.NFTA_CHAIN_NAME, "KUBE-SEP\x00"))
	gone := message(unix.NFT_MSG_DELCHAIN, familyIPv4, table, name)
	for what, c := range map[string]struct {
		messages []byte
		want     bool
	}{
		"nothing":             {nil, false},
		"the canary":          {gone, true},
		"among others":        {slices.Concat(other, gone, other), true},
		"another chain":       {other, false},
		"made, not deleted":   {message(unix.NFT_MSG_NEWCHAIN, familyIPv4, table, name), false},
		"of another family":   {message(unix.NFT_MSG_DELCHAIN, familyIPv6, table, name), false},
		"without a name":      {message(unix.NFT_MSG_DELCHAIN, familyIPv4, table), false},
		"cut off":             {other[:len(other)-1], true},
		"not even a header":   {other[:3], true},
		"shorter than itself": {make([]byte, 20), true},
	} {
		if got := canaryDeleted(c.messages, familyIPv4); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// A name is found wherever the kernel, or somebody in its place, puts it.
func FuzzCanaryDeleted(f *testing.F) {
	name := attribute(unix.NFTA_CHAIN_NAME, canary+"\x00")
	f.Add(message(unix.NFT_MSG_DELCHAIN, familyIPv4, name))
	f.Add(message(unix.NFT_MSG_DELCHAIN, familyIPv4, attribute(1, "nat\x00"), name)[:50])
	gone := message(unix.NFT_MSG_DELCHAIN, familyIPv4, name)
	f.Fuzz(func(t *testing.T, messages []byte) {
		if !canaryDeleted(messages, familyIPv4) && len(messages)%unix.NLMSG_ALIGNTO == 0 &&
			!canaryDeleted(append(slices.Clone(messages), gone...), familyIPv4) {
			t.Errorf("after %x the canary's end is not seen", messages)
		}
	})
}
