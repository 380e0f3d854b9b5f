package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// File is the name of a result's file.
func (r *Result) File() string {
	return fmt.Sprintf("%s-%s.json", r.Date.Format("20060102-1504"), r.Commit)
}

// WriteJSON writes the result to a directory and returns the file. A reader never finds half a file.
func (r *Result) WriteJSON(dir string) (string, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", fmt.Errorf("write result: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("write result: %w", err)
	}
	path := filepath.Join(dir, r.File())
	if err := os.WriteFile(path+".tmp", append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write result: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
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
	front := map[string]bool{}
	for _, row := range rows {
		front[row.ID] = row.Front
	}
	for i := range r.Rows {
		r.Rows[i].front = front[r.Rows[i].ID]
	}
	return r, nil
}
