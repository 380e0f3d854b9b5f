package architecture

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadsAreBounded: what a pod, a plugin, a registry or a client writes is read with a bound. Code that
// reads without one is listed in mayReadAll, with the reason.
func TestReadsAreBounded(t *testing.T) {
	found, err := load(module+"/internal/...", module+"/cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	ofAPI, err := loadIn(filepath.Join("..", "..", apiserver), asBuilt, "./...")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	listed := maps.Clone(mayReadAll)
	for _, p := range slices.Concat(found, ofAPI) {
		for _, file := range p.Syntax {
			for _, r := range unboundedReads(p, file) {
				at := p.Fset.Position(r.at)
				name, _ := filepath.Rel(root, at.Filename)
				key := strings.TrimPrefix(name, "internal/") + " " + r.what
				if _, ok := mayReadAll[key]; !ok {
					t.Errorf("%s:%d: %s reads all there is: use package boundedio, or explain in may_read_all.go who writes it", name, at.Line, r.what)
				}
				delete(listed, key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("mayReadAll lists %q, which does not exist", key)
	}
}

func TestUnboundedReads(t *testing.T) {
	const dir = "testdata/reading"
	found, err := load("./" + dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "reading.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []int
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, "// want") {
			want = append(want, i+1)
		}
	}
	for _, r := range unboundedReads(found[0], found[0].Syntax[0]) {
		got = append(got, found[0].Fset.Position(r.at).Line)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) < 15 {
		t.Errorf("found lines %v, want %v", got, want)
	}
}
