package trust

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swiftlet/test/trust/tally"
)

func shell(script string) Command { return Command{Args: []string{"sh", "-c", script}} }

func TestRunAddsTheCountsOfItsClass(t *testing.T) {
	class := Class{Name: "c", Commands: []Command{
		shell(`printf '=== RUN  Testtrust: {"class":"c","faults":3,"survived":2,"podsLost":1,"restarts":4,"leaks":5}\n'`),
		shell(`echo 'trust: {"class":"other","faults":9}'; echo 'trust: {"class":"c","faults":1,"survived":1}'; echo 'trust: {broken'`),
	}}
	var log bytes.Buffer
	got := Run(t.Context(), t.TempDir(), class, &log)
	want := tally.Counts{Class: "c", Faults: 4, Survived: 3, PodsLost: 1, Restarts: 4, Leaks: 5}
	if got.Counts != want || got.Failure != "" {
		t.Errorf("got %+v, failure %q, want %+v", got.Counts, got.Failure, want)
	}
	if got.Passed() {
		t.Error("a class with a fault that was not survived passed")
	}
	if !strings.Contains(log.String(), "other") {
		t.Errorf("log lacks output: %s", log.String())
	}
}

func TestRunFails(t *testing.T) {
	const fault = `echo 'trust: {"class":"c","faults":1,"survived":1}'; `
	for name, script := range map[string]string{
		"command_exits_with_an_error": fault + "exit 3",
		"no_fault_was_injected":       "echo ok",
	} {
		t.Run(name, func(t *testing.T) {
			got := Run(t.Context(), t.TempDir(), Class{Name: "c", Commands: []Command{shell(script)}}, io.Discard)
			if got.Failure == "" || got.Passed() {
				t.Errorf("passed: %+v", got)
			}
		})
	}
}

func TestCounterBoundsALine(t *testing.T) {
	c := &counter{class: "c"}
	for range 100 {
		_, _ = c.Write(bytes.Repeat([]byte("x"), 4096))
	}
	if len(c.line) > maxLine {
		t.Errorf("kept %d bytes of a line without an end", len(c.line))
	}
	_, _ = io.WriteString(c, "\ntrust: {\"class\":\"c\",")
	_, _ = io.WriteString(c, "\"faults\":2}\n")
	if c.sum.Faults != 2 {
		t.Errorf("counted %d faults of a line in two writes, want 2", c.sum.Faults)
	}
}

func TestCommitIgnoresRecordedResults(t *testing.T) {
	root := t.TempDir()
	commit := func(file, content string) {
		t.Helper()
		write(t, filepath.Join(root, file), content)
		runGit(t, root, "add", ".")
		runGit(t, root, "commit", "-q", "-m", "x")
	}
	runGit(t, root, "init", "-q")
	commit("code.go", "1")
	code := mustCommit(t, root)
	commit("test/trust/results/c.json", "{}")
	commit("docs/reliability.md", "x")
	if got := mustCommit(t, root); got != code {
		t.Errorf("a commit of results changed the commit from %s to %s", code, got)
	}
	write(t, filepath.Join(root, "code.go"), "2")
	if got := mustCommit(t, root); got != code+dirty {
		t.Errorf("with an uncommitted change: %s, want %s", got, code+dirty)
	}
	runGit(t, root, "add", ".")
	runGit(t, root, "commit", "-q", "-m", "x")
	if got := mustCommit(t, root); got == code || strings.HasSuffix(got, dirty) {
		t.Errorf("after a change of code: %s", got)
	}
}

func TestOnlyAPassedResultOfThisCommitIsCurrent(t *testing.T) {
	passed := Result{Counts: tally.Counts{Faults: 1, Survived: 1}, Commit: "a"}
	failed := passed
	failed.Failure = "exit status 1"
	leaked := passed
	leaked.Leaks = 1
	changed := passed
	changed.Commit = "a" + dirty
	for name, c := range map[string]struct {
		result Result
		commit string
		want   bool
	}{
		"passed":                   {passed, "a", true},
		"passed_on_another_commit": {passed, "b", false},
		"failed":                   {failed, "a", false},
		"leaked":                   {leaked, "a", false},
		"uncommitted_changes":      {changed, "a" + dirty, false},
		"never_run":                {Result{}, "a", false},
	} {
		if got := c.result.Current(c.commit); got != c.want {
			t.Errorf("%s: current is %v, want %v", name, got, c.want)
		}
	}
}

func TestResultsAreReadAsWritten(t *testing.T) {
	root := t.TempDir()
	if missing, err := ReadResult(root, "c"); err != nil || missing.Commit != "" {
		t.Errorf("without a file: %+v, %v", missing, err)
	}
	want := Result{Counts: tally.Counts{Class: "c", Faults: 2, Survived: 2}, Commit: "a", Time: "t", Seconds: 5}
	if err := WriteResult(root, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadResult(root, "c"); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	var table bytes.Buffer
	if err := PrintTable(&table, []Result{want, {Counts: tally.Counts{Class: "d"}}}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"faults injected", "passed", "not run"} {
		if !strings.Contains(table.String(), text) {
			t.Errorf("table lacks %q:\n%s", text, table.String())
		}
	}
}

func TestDocumentHasAPlaceForFigures(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", document))
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := replaceFigures(string(text), figures([]Result{{Counts: tally.Counts{Class: "only"}}}))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(replaced, "| only |") {
		t.Error("figures are not in the document")
	}
	for _, class := range Classes() {
		if !strings.Contains(string(text), "`"+class.Name+"`") {
			t.Errorf("%s does not mention class %s", document, class.Name)
		}
	}
}

func TestInterruptStopsChildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() { <-started; cancel() }()
	err := execute(ctx, t.TempDir(), shell("echo started; sleep 600 & wait"), &signalOnWrite{started})
	if err == nil {
		t.Error("an interrupted command succeeded")
	}
}

// signalOnWrite closes the channel at the first write.
type signalOnWrite struct{ written chan struct{} }

func (s *signalOnWrite) Write(p []byte) (int, error) {
	select {
	case <-s.written:
	default:
		close(s.written)
	}
	return len(p), nil
}

func mustCommit(t *testing.T, root string) string {
	t.Helper()
	commit, err := Commit(root)
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

func runGit(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
