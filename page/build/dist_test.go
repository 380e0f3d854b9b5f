package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const dist = "../../internal/page/assets/dist"

// limit is the compressed size of all files.
const limit = 300_000

func TestDistIsWhatTheSourcesBuild(t *testing.T) {
	want, err := bundle("..")
	if err != nil {
		t.Fatalf("%v\nnpm ci in page/ installs the libraries", err)
	}
	got, size, err := read(dist)
	if err != nil {
		t.Fatal(err)
	}
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("dist has %v, the sources build %v; run make page", g, w)
	}
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("dist/%s is not what the sources build; run make page", name)
		}
	}
	if size > limit {
		t.Errorf("%d bytes compressed, the limit is %d", size, limit)
	}
	t.Logf("%d bytes compressed", size)
}

var elsewhere = regexp.MustCompile(`@import|url\(\s*["']?([a-z]+:)?//`)

// TestNothingFromOutside holds that the page names no other server and has no inline script or style.
func TestNothingFromOutside(t *testing.T) {
	files, _, err := read(dist)
	if err != nil {
		t.Fatal(err)
	}
	html := string(files["index.html"])
	for _, forbidden := range []string{"://", "<style", "style=", "onload=", "<script>"} {
		if strings.Contains(html, forbidden) {
			t.Errorf("index.html has %s", forbidden)
		}
	}
	for name, content := range files {
		if strings.HasSuffix(name, ".css") && elsewhere.Match(content) {
			t.Errorf("%s names a file elsewhere", name)
		}
	}
}

// TestTextStaysText holds that no source makes elements of text: what pods write is never markup.
func TestTextStaysText(t *testing.T) {
	sources, err := filepath.Glob("../src/*.js*")
	if err != nil || len(sources) == 0 {
		t.Fatalf("found no sources: %v", err)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, forbidden := range []string{"innerHTML", "outerHTML", "dangerouslySetInnerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function"} {
			if bytes.Contains(text, []byte(forbidden)) {
				t.Errorf("%s has %s", path, forbidden)
			}
		}
	}
}
