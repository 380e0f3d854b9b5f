package nftables

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// canary is the chain that the tests look for.
var canary = Chain{Family: unix.AF_INET, Table: "mangle", Name: "CANARY"}

func isCanary(c Chain) bool { return c == canary }

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

func TestAnyDeleted(t *testing.T) {
	table := attribute(unix.NFTA_CHAIN_TABLE, canary.Table+"\x00")
	name := attribute(unix.NFTA_CHAIN_NAME, canary.Name+"\x00")
	other := message(unix.NFT_MSG_DELCHAIN, canary.Family, table, attribute(unix.NFTA_CHAIN_NAME, "KUBE-SEP\x00"))
	gone := message(unix.NFT_MSG_DELCHAIN, canary.Family, table, name)
	for what, c := range map[string]struct {
		messages []byte
		want     bool
	}{
		"no message":                  {nil, false},
		"the chain":                   {gone, true},
		"the chain among others":      {slices.Concat(other, gone, other), true},
		"attributes in another order": {message(unix.NFT_MSG_DELCHAIN, canary.Family, name, table), true},
		"another chain":               {other, false},
		"added, not deleted":          {message(unix.NFT_MSG_NEWCHAIN, canary.Family, table, name), false},
		"of another family":           {message(unix.NFT_MSG_DELCHAIN, unix.AF_INET6, table, name), false},
		"of another table":            {message(unix.NFT_MSG_DELCHAIN, canary.Family, attribute(unix.NFTA_CHAIN_TABLE, "nat\x00"), name), false},
		"without a name":              {message(unix.NFT_MSG_DELCHAIN, canary.Family, table), false},
		"message cut short":           {other[:len(other)-1], true},
		"header cut short":            {other[:3], true},
		"length less than the header": {make([]byte, 20), true},
	} {
		if got := anyDeleted(c.messages, isCanary); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}

// Whatever comes before it, the deletion of the chain is seen.
func FuzzAnyDeleted(f *testing.F) {
	table := attribute(unix.NFTA_CHAIN_TABLE, canary.Table+"\x00")
	name := attribute(unix.NFTA_CHAIN_NAME, canary.Name+"\x00")
	gone := message(unix.NFT_MSG_DELCHAIN, canary.Family, table, name)
	f.Add(gone)
	f.Add(gone[:len(gone)-6])
	f.Fuzz(func(t *testing.T, messages []byte) {
		if !anyDeleted(messages, isCanary) && len(messages)%unix.NLMSG_ALIGNTO == 0 &&
			!anyDeleted(append(slices.Clone(messages), gone...), isCanary) {
			t.Errorf("after %x the deletion is not seen", messages)
		}
	})
}
