package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var toolchainLine = regexp.MustCompile(`(?m)^toolchain (go\S+)$`)

// TestToolchainIsPinned: every module names the toolchain that builds it, and all name the same.
func TestToolchainIsPinned(t *testing.T) {
	root := filepath.Join("..", "..")
	modules := 0
	want := ""
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if d.Name() != "go.mod" {
			return nil
		}
		modules++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found := toolchainLine.FindSubmatch(text)
		switch {
		case found == nil:
			t.Errorf("%s has no toolchain line", path)
		case want == "":
			want = string(found[1])
		case want != string(found[1]):
			t.Errorf("%s names %s, another module %s", path, found[1], want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if modules < 5 {
		t.Errorf("found only %d modules", modules)
	}
}
