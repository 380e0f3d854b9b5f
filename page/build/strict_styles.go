package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// strictStyles changes how xterm sets styles. It writes <style> elements and style attributes, both of which the page's
// Content-Security-Policy forbids; constructed style sheets and the CSSOM it allows.
func strictStyles(page string) api.Plugin {
	changes := []struct {
		from, to string
		count    int
	}{
		{`this._document.createElement("style")`, `createStyle()`, 2},
		{`n.mainDocument.createElement("style")`, `createStyle()`, 1},
		{"t.setAttribute(\"style\",`${t.getAttribute(\"style\")||\"\"}${e};`)", `t.style.cssText+=e+";"`, 1},
	}
	load := func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		source, err := os.ReadFile(args.Path)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		text := string(source)
		for _, c := range changes {
			if n := strings.Count(text, c.from); n != c.count {
				return api.OnLoadResult{}, fmt.Errorf("%q is there %d times, not %d", c.from, n, c.count)
			}
			text = strings.ReplaceAll(text, c.from, c.to)
		}
		for _, forbidden := range []string{`createElement("style")`, `setAttribute("style"`, "innerHTML"} {
			if strings.Contains(text, forbidden) {
				return api.OnLoadResult{}, fmt.Errorf("still uses %s", forbidden)
			}
		}
		text = fmt.Sprintf("import {createStyle} from %q;\n", filepath.Join(page, "src/style_element.js")) + text
		return api.OnLoadResult{Contents: &text}, nil
	}
	return api.Plugin{Name: "strict styles", Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: `/xterm\.mjs$`}, load)
	}}
}
