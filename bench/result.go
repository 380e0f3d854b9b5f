package bench

import "time"

// Result is everything that one run has measured.
type Result struct {
	About
	Minutes float64     `json:"minutes"`           // how long the run took
	Skipped []string    `json:"skipped,omitempty"` // what was not measured, and why
	Rows    []RowResult `json:"rows"`
}

// About says what was measured, where and when.
type About struct {
	Date     time.Time         `json:"date"`
	Commit   string            `json:"commit"`
	Quick    bool              `json:"quick"`
	Smoke    bool              `json:"smoke,omitempty"` // the figures mean nothing
	Rounds   int               `json:"rounds"`
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
}

// Machine is the machine of a run.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Memory float64 `json:"memoryGB"`
	Kernel string  `json:"kernel"`
}

// RowResult is a row with the medians of the subjects that were measured.
type RowResult struct {
	ID       string             `json:"id"`
	Title    string             `json:"title"`
	Unit     string             `json:"unit"`
	Goal     string             `json:"goal,omitempty"`
	Outcome  string             `json:"outcome,omitempty"` // of the goal
	Subjects map[string]Summary `json:"subjects"`

	front bool
}

// newResult returns the rows that have samples, in the order of the table.
func newResult(about About, samples *recorder, skipped []string, took time.Duration) *Result {
	r := &Result{About: about, Minutes: took.Minutes(), Skipped: skipped}
	for _, row := range rows {
		by := samples.summaries(row.ID)
		if len(by) == 0 {
			continue
		}
		r.Rows = append(r.Rows, RowResult{
			ID: row.ID, Title: row.Title, Unit: row.Unit, Goal: row.Goal.text(row.Unit), Outcome: row.Goal.outcome(by), Subjects: by, front: row.Front,
		})
	}
	return r
}

// ratio compares the medians of two subjects; false if one was not measured in this run.
func (r RowResult) ratio(of, to string) (float64, bool) {
	a, hasA := r.Subjects[of]
	b, hasB := r.Subjects[to]
	if !hasA || !hasB || b.Median == 0 {
		return 0, false
	}
	return a.Median / b.Median, true
}
