package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

// TestOutsideCallsHaveDeadlines: every file that makes a call that may hang is in the table of docs/deadlines.md.
func TestOutsideCallsHaveDeadlines(t *testing.T) {
	text, err := os.ReadFile("../../docs/deadlines.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if strings.HasSuffix(filepath.Dir(name), "test") || strings.Contains(name, "/testdata/") { // helpers of tests, such as quotatest
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if found := uses(file, outsideCalls); len(found) > 0 && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s calls %s: add it to the table of docs/deadlines.md, with its deadline", name, strings.Join(found, ", "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for cell := range strings.SplitSeq(string(text), "`") {
		if strings.HasSuffix(cell, ".go") {
			if _, err := os.Stat(filepath.Join("..", cell)); err != nil {
				t.Errorf("docs/deadlines.md has %s, which does not exist", cell)
			}
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
