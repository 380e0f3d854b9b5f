package licences

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

// allowed are the SPDX identifiers of licences under which we may ship a linked module: permissive
// ones, and MPL-2.0, whose terms end at the module's own files, which are shipped unchanged.
var allowed = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "MPL-2.0"}

// binding begin the identifiers of licences that the scanner must recognize, so that it rejects a file
// that has one of them beside an allowed one. To recognize all that it knows would take 10 seconds.
var binding = []string{"GPL-", "LGPL-", "AGPL-", "SSPL", "BUSL", "EPL-", "CDDL-", "EUPL-", "Elastic"}

// licenceFile matches the names of files with a licence in the root of a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)

// module is one that is linked.
type module struct{ path, version, dir string }

func TestLinkedModulesHaveAllowedLicences(t *testing.T) {
	if testing.Short() {
		t.Skip("lists modules; make check runs it")
	}
	scanner := newScanner(t)
	for name, linked := range map[string][]string{
		"swiftlet":  {"-C", "../..", "list", "-deps", "-f", format, "./cmd/swiftlet"},
		"bundle":    {"-C", "../../bundle", "list", "-deps", "-f", format, "tool"},
		"apiserver": {"-C", "../../apiserver", "list", "-deps", "-f", format, ".", "./dns", "tool"},
	} {
		t.Run(name, func(t *testing.T) {
			modules := list(t, linked)
			if len(modules) < 50 {
				t.Fatalf("found only %d modules", len(modules))
			}
			for _, m := range modules {
				if err := check(scanner, m); err != nil {
					t.Errorf("%s %s: %v", m.path, m.version, err)
				}
			}
		})
	}
}

func TestCheckRejects(t *testing.T) {
	scanner := newScanner(t)
	for name, files := range map[string]map[string]string{
		"no_licence":          {"README.md": "x"},
		"unknown_licence":     {"LICENSE": "You may do as we say."},
		"licence_that_binds":  {"LICENSE": gpl},
		"allowed_and_binding": {"LICENSE": isc + "\n" + gpl},
		"allowed_and_other":   {"LICENSE": isc, "COPYING": "You may do as we say."},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := check(scanner, module{dir: dir}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(isc), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := check(scanner, module{dir: dir}); err != nil {
		t.Errorf("allowed licence: %v", err)
	}
}

const isc = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`

const gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.

You should have received a copy of the GNU General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.
`

// newScanner recognizes the licences that are allowed and those that bind.
func newScanner(t *testing.T) *licensecheck.Scanner {
	t.Helper()
	var recognized []licensecheck.License
	for _, l := range licensecheck.BuiltinLicenses() {
		binds := slices.ContainsFunc(binding, func(prefix string) bool { return strings.HasPrefix(l.ID, prefix) })
		if binds || slices.Contains(allowed, l.ID) {
			recognized = append(recognized, l)
		}
	}
	scanner, err := licensecheck.NewScanner(recognized)
	if err != nil {
		t.Fatal(err)
	}
	return scanner
}

const format = `{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}} {{.Version}} {{.Dir}}{{else}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}{{end}}`

// list returns the modules of the packages, without repetitions.
func list(t *testing.T, args []string) []module {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	var modules []module
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue // a package of the standard library or of ours
		}
		if m := (module{fields[0], fields[1], fields[2]}); !slices.Contains(modules, m) {
			modules = append(modules, m)
		}
	}
	return modules
}

// check reads the licence files of a module. Each must be recognized and allowed.
func check(scanner *licensecheck.Scanner, m module) error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("read module: %w", err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		if strings.HasSuffix(entry.Name(), ".docs") {
			continue // documents are not linked
		}
		found = true
		text, err := os.ReadFile(filepath.Join(m.dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("read licence: %w", err)
		}
		scanned := scanner.Scan(text)
		if len(scanned.Match) == 0 {
			return fmt.Errorf("licence in %s is not known", entry.Name())
		}
		for _, match := range scanned.Match {
			if !slices.Contains(allowed, match.ID) {
				return fmt.Errorf("licence %s in %s is not allowed", match.ID, entry.Name())
			}
		}
	}
	if !found {
		return fmt.Errorf("no licence found in %s", m.dir)
	}
	return nil
}
