package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Config is what to measure.
type Config struct {
	Program string         // the Swiftlet to measure, stripped
	Rows    *regexp.Regexp // experiments run that measure a row whose ID matches
	Rounds  int
	Limit   time.Duration // no experiment begins later
	Quick   bool          // the short experiments, each with fewer repetitions
	Smoke   bool          // every experiment with few pods: to see that it works, not to measure
}

// Run measures and returns the result. If ctx ends or the limit passes, the result has what was measured
// until then. It calls save after each experiment.
func Run(ctx context.Context, config Config, progress io.Writer, save func(*Result) error) (_ *Result, err error) {
	if config.Rounds < 1 || config.Rows == nil || config.Program == "" {
		return nil, errors.New("run benchmark: rounds, rows and a program are required")
	}
	c, err := openCluster(ctx, progress, config.Program)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := &runner{Config: config, cluster: c, progress: progress, samples: newRecorder(), began: time.Now(), save: save}
	if r.about, err = c.describe(ctx, config); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// runner is one run.
type runner struct {
	Config
	cluster  *cluster
	progress io.Writer
	samples  *recorder
	about    About
	began    time.Time
	save     func(*Result) error
	skipped  []string // what was not measured, and why
}

func (r *runner) run(ctx context.Context) (*Result, error) {
	selected := selectExperiments(r.Rows, r.Quick)
	for round := 1; round <= r.Rounds; round++ {
		for i, e := range selected {
			if e.phase == everyRound || e.phase == firstRound && round == 1 {
				if err := r.experiment(ctx, e, round, round+i); err != nil {
					return r.result(), err
				}
			}
		}
	}
	err := r.afterwards(ctx, selected)
	return r.result(), err
}

// afterwards runs the experiments that disturb others.
func (r *runner) afterwards(ctx context.Context, selected []experiment) error {
	prepared := false
	for _, e := range selected {
		if e.phase != afterwards || ctx.Err() != nil {
			continue
		}
		if !prepared {
			if err := r.cluster.bed.ControlPlane.AuditNodes(ctx); err != nil {
				return err
			}
			prepared = true
		}
		if err := r.experiment(ctx, e, 1, 0); err != nil {
			return err
		}
	}
	return nil
}

// experiment runs on all subjects, beginning with another one each time.
func (r *runner) experiment(ctx context.Context, e experiment, round, first int) error {
	subjects := r.cluster.subjects
	for i := range subjects {
		s := subjects[(first+i)%len(subjects)]
		if s.name() == Bare && !e.bare {
			continue
		}
		r.trial(ctx, e, s, round)
	}
	return r.save(r.result())
}

// trial runs an experiment on one subject. A failure is part of the result and does not end the run.
func (r *runner) trial(ctx context.Context, e experiment, s subject, round int) {
	what := fmt.Sprintf("%s, %s, round %d", e.name, s.name(), round)
	switch elapsed := time.Since(r.began); {
	case ctx.Err() != nil:
		r.skip(what, errors.New("interrupted"))
		return
	case r.Limit > 0 && elapsed+e.usual > r.Limit:
		r.skip(what, fmt.Errorf("the limit of %v would be exceeded", r.Limit))
		return
	}
	fmt.Fprintf(r.progress, "bench %6s  round %d of %d  %-18s %-9s (usually %v)\n",
		time.Since(r.began).Round(time.Second), round, r.Rounds, e.name, s.name(), e.usual)
	t := &trial{cluster: r.cluster, subject: s, round: round, quick: r.Quick || r.Smoke, smoke: r.Smoke, samples: r.samples}
	err := settle(ctx)
	if err == nil {
		err = e.run(ctx, t)
	}
	if err == nil {
		return
	}
	r.skip(what, err)
	if err := s.clear(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(r.progress, "bench: remove pods of %s: %v\n", s.name(), err)
	}
}

func (r *runner) skip(what string, why error) {
	r.skipped = append(r.skipped, what+": "+why.Error())
	fmt.Fprintf(r.progress, "bench: %s: %v\n", what, why)
}

// result is what was measured so far.
func (r *runner) result() *Result {
	return newResult(r.about, r.samples, r.skipped, time.Since(r.began))
}
