package assets

import (
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	f, found := Open("index.html")
	if !found || f.Type != "text/html; charset=utf-8" {
		t.Fatalf("index.html: found %v, type %q", found, f.Type)
	}
	html, err := f.Plain()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app-", ".css", ".js"} {
		if !strings.Contains(string(html), name) {
			t.Errorf("index.html does not refer to %s", name)
		}
	}
	for _, name := range strings.Split(string(html), `"`) {
		if !strings.HasPrefix(name, "assets/") {
			continue
		}
		if f, found := Open(name); !found || f.Type == "" {
			t.Errorf("%s: found %v, type %q", name, found, f.Type)
		}
	}
	for _, name := range []string{"", ".", "assets", "../assets.go", "assets/../assets.go", "/index.html", "index.html.gz", "x.js"} {
		if _, found := Open(name); found {
			t.Errorf("%q was found", name)
		}
	}
}
