package credentialplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// maxAnswer and maxComplaint bound what is kept of a plugin's output and errors.
	maxAnswer    = 1 << 20
	maxComplaint = 4 << 10
	// lingering is how long a plugin's output is waited for once it has ended: something
	// that it left behind may hold it open.
	lingering = time.Second
)

// run hands a request to the program and returns what it writes. The program and all that
// it started in its process group are killed when its time is over or ctx ends.
func (p *plugin) run(ctx context.Context, request []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	answer := &bounded{limit: maxAnswer, full: cancel}
	complaint := &bounded{limit: maxComplaint}

	cmd := exec.CommandContext(limited, p.program, p.Args...)
	cmd.Env = os.Environ() // of two with one name, the last counts
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), answer, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.WaitDelay = lingering

	began := p.deps.Clock.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err() // nobody wants the answer any more: no failure of the plugin's
	}
	p.deps.Meters.Ran.Took(p.Name, p.deps.Clock.Since(began))
	switch {
	case answer.over:
		err = fmt.Errorf("output exceeds %d bytes", maxAnswer)
	case err != nil && limited.Err() != nil:
		err = fmt.Errorf("timed out after %v and was killed", p.timeout)
	case errors.Is(err, exec.ErrWaitDelay): // it ended well
		err = nil
	}
	if err == nil {
		return answer.kept.Bytes(), nil
	}
	p.deps.Meters.Failed.Inc(p.Name)
	if said := strings.TrimSpace(complaint.kept.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return nil, err
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	kept  bytes.Buffer
	limit int
	over  bool
	full  func() // called when there is more; may be nil
}

// Write takes everything, so that a program that says too much is not stuck with it.
func (b *bounded) Write(data []byte) (int, error) {
	if room := b.limit - b.kept.Len(); len(data) > room {
		b.kept.Write(data[:room])
		b.over = true
		if b.full != nil {
			b.full()
		}
		return len(data), nil
	}
	return b.kept.Write(data)
}
