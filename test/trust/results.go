package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"swiftlet/test/trust/tally"
)

// Result is the recorded result of a class.
type Result struct {
	tally.Counts
	Commit  string `json:"commit"` // of the code that was tested, see Commit
	Time    string `json:"time"`   // when the run began
	Seconds int    `json:"seconds"`
	Failure string `json:"failure,omitempty"` // empty if the class passed
}

// Passed reports whether the class passed and nothing was lost.
func (r Result) Passed() bool {
	return r.Failure == "" && r.Survived == r.Faults && r.PodsLost == 0 && r.Restarts == 0 && r.Leaks == 0
}

// dirty ends the commit of a result if the working tree had changes.
const dirty = "-dirty"

// recorded are the files that `make trust` writes. Commits that change nothing else are not counted.
var recorded = []string{resultDir, document}

const resultDir = "test/trust/results"

// Commit returns the last commit that changed more than recorded results, so that committing results
// does not make them outdated. Uncommitted changes are marked.
func Commit(root string) (string, error) {
	paths := []string{"."}
	for _, file := range recorded {
		paths = append(paths, ":!"+file)
	}
	commit, err := git(root, append([]string{"log", "-1", "--format=%H", "--"}, paths...)...)
	if err != nil {
		return "", err
	}
	changes, err := git(root, append([]string{"status", "--porcelain", "--"}, paths...)...)
	if err != nil {
		return "", err
	}
	if changes != "" {
		commit += dirty
	}
	return commit, nil
}

func git(root string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// ReadResult returns the recorded result of a class, or a zero Result if there is none.
func ReadResult(root, class string) (Result, error) {
	data, err := os.ReadFile(resultFile(root, class))
	if errors.Is(err, fs.ErrNotExist) {
		return Result{Counts: tally.Counts{Class: class}}, nil
	}
	if err != nil {
		return Result{}, fmt.Errorf("read result: %w", err)
	}
	var result Result
	if err := json.Unmarshal(data, &result); err != nil {
		return Result{}, fmt.Errorf("read result %s: %w", resultFile(root, class), err)
	}
	return result, nil
}

// WriteResult records a result.
func WriteResult(root string, result Result) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, resultDir), 0o755); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := os.WriteFile(resultFile(root, result.Class), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

func resultFile(root, class string) string {
	return filepath.Join(root, resultDir, class+".json")
}

// Current reports whether a result need not be repeated: it passed, on this commit.
func (r Result) Current(commit string) bool {
	return r.Passed() && r.Commit == commit && !strings.HasSuffix(commit, dirty)
}
