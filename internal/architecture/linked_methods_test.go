package architecture

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkedProgram: nothing in the program finds methods by name at run time. Otherwise the linker would
// keep every exported method of every linked type, which makes the binary 19 MB larger. text/template and
// reflect.Value.MethodByName do that; constant names are harmless. The program is not larger than maxBinary.
func TestLinkedProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program; make check runs it")
	}
	program, target := filepath.Join(t.TempDir(), "swiftlet"), module+"/cmd/swiftlet"
	// go caches the linker's output with the compiled main package and prints it again when another build
	// finds its program up to date. With a flag of the compiler that changes nothing it is another package.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-gcflags", target+"=-c=1",
		"-ldflags", "-s -w -dumpdep", "-o", program, target)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build swiftlet: %v\n%s", err, output)
	}
	if found, edges := methodsByName(output); edges < 100_000 {
		t.Fatalf("the linker printed %d dependencies: the analysis does not work", edges)
	} else if found != nil {
		t.Errorf("methods are found by name; reached by\n\t%s", strings.Join(found, "\n\t"))
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program has %d bytes", info.Size())
	if info.Size() > maxBinary {
		t.Errorf("the program has %d bytes, at most %d are allowed: docs/performance.md says how to find the cause", info.Size(), maxBinary)
	}
}

// methodsByName returns how the first function that finds methods by name is reached, from the function
// to main. Dependencies are the output of the linker's -dumpdep: a line `user -> used` for each, in the
// order in which the linker found them.
func methodsByName(dependencies []byte) (path []string, edges int) {
	const mark = " <ReflectMethod>"
	user := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(dependencies))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		from, to, ok := strings.Cut(lines.Text(), " -> ")
		if !ok {
			continue
		}
		edges++
		name := symbol(to)
		if _, known := user[name]; !known {
			user[name] = symbol(from)
		}
		if strings.HasSuffix(to, mark) && path == nil {
			for at := name; at != "" && len(path) < 20; at = user[at] {
				path = append(path, at)
			}
		}
	}
	return path, edges
}

// symbol returns the name of a symbol without its marks.
func symbol(s string) string {
	name, _, _ := strings.Cut(s, " <")
	return name
}
