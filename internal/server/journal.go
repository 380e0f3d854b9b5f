package server

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// longestQuery bounds the time that a query of logs may take.
const longestQuery = 30 * time.Second

// serviceLogs answers with the logs of services: from the journal where that has them, or
// else from files that bear their names. What goes wrong on the way is told in the text,
// for the answer has begun.
func (s *Server) serviceLogs(w http.ResponseWriter, r *http.Request, q *nodeLogQuery) {
	ctx, cancel := context.WithTimeout(r.Context(), longestQuery)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
	var out io.Writer = w
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		out = packed
	}
	inJournal, inFiles := splitServices(q.services, journalUnits(ctx))
	if len(inJournal) > 0 {
		copyJournal(ctx, out, q.journalArgs(inJournal))
	}
	if len(inFiles) > 0 && q.journalOptions != (journalOptions{}) {
		fmt.Fprintf(out, "\noptions present and query resolved to log files for %v\ntry without specifying options\n", inFiles)
		return
	}
	for _, service := range inFiles {
		s.copyServiceFile(ctx, out, service)
	}
}

// journalUnits are the units that the journal has entries of; none where there is no journal.
func journalUnits(ctx context.Context) map[string]bool {
	list, err := exec.CommandContext(ctx, "journalctl", "--field", "_SYSTEMD_UNIT").Output()
	if err != nil {
		return nil
	}
	units := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		units[strings.TrimSpace(line)] = true
	}
	return units
}

func splitServices(services []string, units map[string]bool) (inJournal, inFiles []string) {
	for _, service := range services {
		if units[service+".service"] {
			inJournal = append(inJournal, service)
		} else {
			inFiles = append(inFiles, service)
		}
	}
	return inJournal, inFiles
}

// journalArgs are the arguments of journalctl. Each value is joined to its option, so that
// none can be taken for another option.
func (q *nodeLogQuery) journalArgs(services []string) []string {
	const layout = "2006-01-02 15:04:05 UTC"
	args := []string{"--utc", "--no-pager", "--output=short-precise"}
	if q.since != nil {
		args = append(args, "--since="+q.since.UTC().Format(layout))
	}
	if q.until != nil {
		args = append(args, "--until="+q.until.UTC().Format(layout))
	}
	if q.tail != nil {
		args = append(args, "--pager-end", fmt.Sprintf("--lines=%d", *q.tail))
	}
	for _, service := range services {
		args = append(args, "--unit="+service)
	}
	if q.pattern != "" {
		args = append(args, "--grep="+q.pattern)
	}
	if q.boot != nil {
		args = append(args, fmt.Sprintf("--boot=%d", *q.boot))
	}
	return args
}

func copyJournal(ctx context.Context, out io.Writer, args []string) {
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	cmd.Stdout, cmd.Stderr = out, out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) { // one that ran has told its reason
		fmt.Fprint(out, "\nerror: journal output not available\n")
	}
}

// copyServiceFile takes the first file that may be a service's log.
func (s *Server) copyServiceFile(ctx context.Context, out io.Writer, service string) {
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		err := s.logTree().copy(ctx, out, name)
		switch {
		case err == nil:
			return
		case !errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(out, "\nerror getting log for %s: %v\n", service, err)
			return
		}
	}
	fmt.Fprintf(out, "\nlog not found for %s\n", service)
}

// copy writes a file; a directory counts as none.
func (t logTree) copy(ctx context.Context, out io.Writer, name string) error {
	file, err := t.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fs.ErrNotExist
	}
	stop := context.AfterFunc(ctx, func() { file.Close() })
	defer stop()
	_, err = io.Copy(out, file)
	return err
}
