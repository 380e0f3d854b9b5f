package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// allowed are the licences of libraries that the page may contain.
var allowed = []string{"MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause"}

// licences are the texts of the licences of all libraries, which ask to be kept with copies.
func licences(page string) ([]byte, error) {
	var lock struct {
		Packages map[string]struct{ Version, License string }
	}
	text, err := os.ReadFile(filepath.Join(page, "package-lock.json"))
	if err != nil {
		return nil, fmt.Errorf("licences: %w", err)
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("licences: package-lock.json: %w", err)
	}
	delete(lock.Packages, "") // the page itself
	var all bytes.Buffer
	for _, dir := range slices.Sorted(maps.Keys(lock.Packages)) {
		library := lock.Packages[dir]
		name := strings.TrimPrefix(dir, "node_modules/")
		if !slices.Contains(allowed, library.License) {
			return nil, fmt.Errorf("licences: %s has the licence %q", name, library.License)
		}
		licence, err := os.ReadFile(filepath.Join(page, dir, "LICENSE"))
		if err != nil {
			return nil, fmt.Errorf("licences: %w", err)
		}
		fmt.Fprintf(&all, "%s %s\n\n%s\n\n", name, library.Version, bytes.TrimSpace(licence))
	}
	return all.Bytes(), nil
}
