package nftables

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// canary is the chain to detect.
var canary = Chain{Family: unix.AF_INET, Table: "mangle", Name: "CANARY"}

func isCanary(c Chain) bool { return c == canary }

func attribute(kind uint16, value string) []byte {
	data := binary.NativeEndian.AppendUint16(nil, uint16(attrHead+len(value)))
	data = append(binary.NativeEndian.AppendUint16(data, kind), value...)
	return append(data, make([]byte, aligned(len(data))-len(data))...)
}

// message builds an nftables message with these attributes.
func message(kind uint16, family byte, attributes ...[]byte) []byte {
	body := slices.Concat(append([][]byte{{family, 0, 0, 0}}, attributes...)...)
	data := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	data = binary.NativeEndian.AppendUint16(data, unix.NFNL_SUBSYS_NFTABLES<<8|kind)
	return append(append(data, make([]byte, unix.SizeofNlMsghdr-len(data))...), body...)
}

func TestAnyDeleted(t *testing.T) {
	table := attribute(unix.NFTA_CHAIN_TABLE, canary.Table+"\x00")
	name := attribute(unix.NFTA_CHAIN_NAME, canary.Name+"\x00")
	other := message(unix.NFT_MSG_DELCHAIN, canary.Family, table, attribute(unix.NFTA_CHAIN_NAME, "KUBE-SEP\x00"))
	deleted := message(unix.NFT_MSG_DELCHAIN, canary.Family, table, name)
	for what, c := range map[string]struct {
		messages []byte
		want     bool
	}{
		"no message":                  {nil, false},
		"chain deleted":               {deleted, true},
		"chain deleted among others":  {slices.Concat(other, deleted, other), true},
		"attributes in another order": {message(unix.NFT_MSG_DELCHAIN, canary.Family, name, table), true},
		"another chain":               {other, false},
		"chain added":                 {message(unix.NFT_MSG_NEWCHAIN, canary.Family, table, name), false},
		"chain of another family":     {message(unix.NFT_MSG_DELCHAIN, unix.AF_INET6, table, name), false},
		"chain of another table":      {message(unix.NFT_MSG_DELCHAIN, canary.Family, attribute(unix.NFTA_CHAIN_TABLE, "nat\x00"), name), false},
		"chain without a name":        {message(unix.NFT_MSG_DELCHAIN, canary.Family, table), false},
		"truncated message":           {other[:len(other)-1], true},
		"truncated header":            {other[:3], true},
		"length less than the header": {make([]byte, 20), true},
	} {
		if got := anyDeleted(c.messages, isCanary); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}

// The deletion of the chain is detected after any other message.
func FuzzAnyDeleted(f *testing.F) {
	table := attribute(unix.NFTA_CHAIN_TABLE, canary.Table+"\x00")
	name := attribute(unix.NFTA_CHAIN_NAME, canary.Name+"\x00")
	deleted := message(unix.NFT_MSG_DELCHAIN, canary.Family, table, name)
	f.Add(deleted)
	f.Add(deleted[:len(deleted)-6])
	f.Fuzz(func(t *testing.T, messages []byte) {
		if !anyDeleted(messages, isCanary) && len(messages)%unix.NLMSG_ALIGNTO == 0 &&
			!anyDeleted(append(slices.Clone(messages), deleted...), isCanary) {
			t.Errorf("after %x the deletion is not detected", messages)
		}
	})
}
