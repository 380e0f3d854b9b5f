package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIPTablesChains: the node has the iptables chains that other programs look for.
func TestIPTablesChains(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	for _, program := range []string{"iptables", "ip6tables"} {
		text, err := os.ReadFile("../../internal/iptables/testdata/" + program + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		want := ownChains(string(text))
		eventually(t, timeout, func() string {
			now, err := node.Exec(t.Context(), program+"-save")
			if err != nil {
				return err.Error()
			}
			return cmp.Diff(want, ownChains(now))
		})
	}
}

// ownChains lists the chains and rules of Kubernetes, each with its table.
func ownChains(saved string) []string {
	var table string
	var list []string
	for line := range strings.Lines(saved) {
		if line[0] == '*' {
			table = strings.TrimSpace(line)
		} else if strings.Contains(line, "KUBE-") {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " [")
			list = append(list, table+" "+line)
		}
	}
	slices.Sort(list)
	return list
}
