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

	"swiftlet/internal/boundedio"
)

// logQueryTimeout limits a query of service logs.
const logQueryTimeout = 30 * time.Second

// serviceLogs sends the logs of services, from the journal if it has them, or else from files of
// their names. It reports errors in the text, because the status is already sent.
func (s *Server) serviceLogs(w http.ResponseWriter, r *http.Request, q *nodeLogQuery) {
	ctx, cancel := context.WithTimeout(r.Context(), logQueryTimeout)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
	var out io.Writer = w
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		gzipped := gzip.NewWriter(w)
		defer gzipped.Close()
		out = gzipped
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

// journalUnits lists the units that have entries in the journal; none if there is no journal.
func journalUnits(ctx context.Context) map[string]bool {
	list, err := boundedio.Output(exec.CommandContext(ctx, "journalctl", "--field", "_SYSTEMD_UNIT"), boundedio.Document)
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

// journalArgs returns the arguments of journalctl. Each value is part of its option's argument,
// so that no value is parsed as an option.
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
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) { // journalctl itself wrote the reason of its exit code
		fmt.Fprint(out, "\nerror: journal output not available\n")
	}
}

// copyServiceFile sends the first file that may be the log of a service.
func (s *Server) copyServiceFile(ctx context.Context, out io.Writer, service string) {
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		err := s.logDir().copy(ctx, out, name)
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

// copy sends a file. It reports a directory as not existing.
func (d logDir) copy(ctx context.Context, out io.Writer, name string) error {
	file, err := d.Open(name)
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
