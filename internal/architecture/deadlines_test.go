package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outsideCalls are functions that leave the process and may hang, by package.
var outsideCalls = map[string][]string{
	"exec": {"Command", "CommandContext"},
	"unix": {"Mount", "Unmount", "Statfs", "Statx"},
	"grpc": {"NewClient", "Dial", "DialContext"},
	"dbus": {"ConnectSystemBus", "Dial", "Connect", "SystemBusPrivate", "SystemBus"},
	"net":  {"Dial", "DialTimeout", "Dialer", "DefaultResolver", "Resolver", "LookupIP", "LookupHost", "LookupAddr"},
	"tls":  {"Dial", "DialWithDialer", "Dialer"},
	"http": {"NewRequest", "NewRequestWithContext", "Get", "Head", "Post", "PostForm"},
	// Streams to the runtime.
	"proxy":         {"NewUpgradeAwareHandler"},
	"remotecommand": {"NewSPDYExecutor", "NewSPDYExecutorRejectRedirects"},
}

// uses lists the functions of calls that a file uses, as "package.Function".
func uses(file *ast.File, calls map[string][]string) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := use.X.(*ast.Ident); ok && slices.Contains(calls[of.Name], use.Sel.Name) {
			found = append(found, of.Name+"."+use.Sel.Name)
		}
		return true
	})
	return found
}

// TestOutsideCallsHaveDeadlines: every file that makes calls that may hang is in the table of docs/deadlines.md, and
// the number of its calls in outsideCallsOf, so that no call is added without a look at the table.
func TestOutsideCallsHaveDeadlines(t *testing.T) {
	text, err := os.ReadFile("../../docs/deadlines.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := sourceFiles()
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range files {
		if strings.HasSuffix(filepath.Dir(name), "test") || strings.Contains(name, "/testdata/") { // helpers of tests, such as quotatest
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := uses(file, outsideCalls)
		if len(found) > 0 && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s calls %s: add it to the table of docs/deadlines.md, with its deadline", name, strings.Join(found, ", "))
		}
		if want := outsideCallsOf[name]; len(found) != want {
			t.Errorf("%s makes %d outside calls (%s), want %d: check its rows of docs/deadlines.md, then change outside_calls.go", name, len(found), strings.Join(found, ", "), want)
		}
	}
	for name := range outsideCallsOf {
		if files[name] == "" {
			t.Errorf("outsideCallsOf has %s, which does not exist", name)
		}
	}
	for cell := range strings.SplitSeq(string(text), "`") {
		if strings.HasSuffix(cell, ".go") && files[cell] == "" {
			t.Errorf("docs/deadlines.md has %s, which does not exist", cell)
		}
	}
}

// withoutTimeout are the calls of the runtime that only their caller's context ends, with the reason.
var withoutTimeout = map[string]string{
	"PullImage": "may take as long as the network does; image.pullSlots limits what waits for it",
	"ExecSync":  "hooks end with their container; probes pass a timeout",
	"Events":    "a stream",
}

// TestRuntimeCallsHaveTimeout: every method of the CRI client sets a deadline.
func TestRuntimeCallsHaveTimeout(t *testing.T) {
	files, err := filepath.Glob("../cri/*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Body == nil {
				continue
			}
			called, bounded := "", false
			ast.Inspect(f.Body, func(n ast.Node) bool {
				use, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := use.X.(*ast.SelectorExpr); ok && (of.Sel.Name == "runtime" || of.Sel.Name == "images") {
					called = use.Sel.Name
				}
				bounded = bounded || use.Sel.Name == "withTimeout"
				return true
			})
			if called == "" {
				continue
			}
			calls++
			if _, excepted := withoutTimeout[f.Name.Name]; bounded == excepted {
				t.Errorf("%s: %s calls %s: sets a timeout: %v; withoutTimeout has it: %v", path, f.Name.Name, called, bounded, excepted)
			}
		}
	}
	if calls < 25 {
		t.Errorf("found only %d calls of the runtime", calls)
	}
}
