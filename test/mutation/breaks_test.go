package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBreaksApply: each break finds the code that it changes. Without this, a change of that code would be
// noticed by the next `make mutations` only.
func TestBreaksApply(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../internal", b.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), b.from); n != 1 {
				t.Errorf("%s has %q %d times, not once", b.file, b.from, n)
			}
		})
	}
}
