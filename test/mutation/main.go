package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/test/trust/tally"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	only, err := regexp.Compile(strings.Join(args, " "))
	if err != nil {
		return err
	}
	// Always the same directory: Go's build cache depends on it. Another run waits.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("swiftlet-mutation-%d", os.Getuid()))
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyRepository(dir); err != nil {
		return err
	}
	counts := tally.Counts{Class: "mutations"}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "BREAK\tCAUGHT BY")
	for _, b := range breaks {
		if !only.MatchString(b.name) {
			continue
		}
		began := time.Now()
		caught, err := b.try(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		counts.Faults++
		if caught != "" {
			counts.Survived++
		}
		fmt.Fprintf(os.Stderr, "%s: %s (%v)\n", b.name, orNothing(caught), time.Since(began).Round(time.Second))
		fmt.Fprintf(table, "%s\t%s\n", b.name, orNothing(caught))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	line, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	fmt.Printf("%s%s\n", tally.Prefix, line)
	if counts.Survived < counts.Faults {
		return fmt.Errorf("%d of %d breaks were not caught", counts.Faults-counts.Survived, counts.Faults)
	}
	return nil
}

func orNothing(test string) string {
	if test == "" {
		return "NOTHING"
	}
	return test
}

// copyRepository copies the files of the working tree.
func copyRepository(to string) error {
	list, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		content, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		if err != nil {
			return fmt.Errorf("copy repository: %w", err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("copy repository: %w", err)
		}
		if err := os.WriteFile(path, content, 0o755); err != nil {
			return fmt.Errorf("copy repository: %w", err)
		}
	}
	return nil
}

// try makes the break, runs the test, and returns the first test that failed.
func (b breakage) try(dir string) (caught string, err error) {
	file := filepath.Join(dir, "internal", b.file)
	before, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(before), b.from); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, not once", b.file, b.from, n)
	}
	after := strings.Replace(string(before), b.from, b.to, 1)
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		return "", err
	}
	defer func() {
		if restored := os.WriteFile(file, before, 0o644); err == nil {
			err = restored
		}
	}()
	test := exec.Command("go", append([]string{"test", "-count=1", "-failfast", "-timeout", "5m"}, strings.Fields(b.test)...)...)
	test.Dir = dir
	out, failed := test.CombinedOutput()
	if failed == nil {
		return "", nil
	}
	if strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]") {
		return "", fmt.Errorf("the broken code does not compile: %s", out)
	}
	return firstFailure(string(out)), nil
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// firstFailure returns the deepest name of the first test that failed.
func firstFailure(output string) string {
	name := ""
	for _, match := range failure.FindAllStringSubmatch(output, -1) {
		if name != "" && !strings.HasPrefix(match[1], name) {
			break
		}
		name = match[1]
	}
	if name == "" {
		return "a panic or a deadline"
	}
	return name
}
