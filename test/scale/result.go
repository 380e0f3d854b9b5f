package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"swiftlet/bench"
)

// Result is everything that one call of the command has measured.
type Result struct {
	Date     time.Time     `json:"date"`
	Commit   string        `json:"commit"`
	Machine  bench.Machine `json:"machine"`
	Minutes  float64       `json:"minutes"`
	Runs     []*Run        `json:"runs"`
	Outcomes []Outcome     `json:"goals"`
}

// Finish evaluates the goals.
func (r *Result) Finish() { r.Outcomes = outcomes(r.Runs) }

// Err is an error that names the goals that were not reached.
func (r *Result) Err() error {
	text := ""
	for _, o := range r.Outcomes {
		if !o.Reached {
			text += "\n  " + o.Text
		}
	}
	if text != "" {
		return fmt.Errorf("not reached:%s", text)
	}
	return nil
}

// WriteJSON writes the result to a directory and returns the file.
func (r *Result) WriteJSON(dir string) (string, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", fmt.Errorf("write result: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("write result: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%s.json", r.Date.Format("20060102-1504"), r.Commit))
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write result: %w", err)
	}
	return path, nil
}

// ReadJSON reads a result that WriteJSON has written.
func ReadJSON(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read result %s: %w", path, err)
	}
	return r, nil
}
