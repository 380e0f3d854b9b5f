package boundedio

import (
	"fmt"
	"strings"
	"testing"
)

// bombs are small documents that expand to gigabytes: aliases of aliases, and aliases of a long text, which no library
// rejects.
func bombs() map[string]string {
	nested := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for n := range 12 {
		nested += fmt.Sprintf("a%d: &a%d [%s]\n", n+1, n+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", n), 9), ", "))
	}
	return map[string]string{
		"nested": nested,
		"wide":   "text: &t " + strings.Repeat("x", 64<<10) + "\nall: [" + strings.TrimSuffix(strings.Repeat("*t, ", 100_000), ", ") + "]\n",
	}
}

// TestAliasBombIsRejected for CVE-2019-11253.
func TestAliasBombIsRejected(t *testing.T) {
	for name, text := range bombs() {
		if err := CheckAliases([]byte(text), 10<<20); err == nil || !strings.Contains(err.Error(), "expand to more than 10485760 bytes") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for text, valid := range map[string]bool{
		"a: &a {b: c}\nd: *a\ne: *a\n": true, "a: b && c * d\n": true, "a: &a [*a]\n": false, "a: &a b\nc: *d\n": false, "&a: *": false,
	} {
		if err := CheckAliases([]byte(text), 10<<20); (err == nil) != valid {
			t.Errorf("%q: got %v, valid %t", text, err, valid)
		}
	}
}

func FuzzCheckAliases(f *testing.F) {
	f.Add([]byte("a: &a {b: c}\nd: *a\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) { _ = CheckAliases(data, 1<<20) })
}
