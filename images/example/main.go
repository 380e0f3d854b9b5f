// Example is the program of the image in examples/manifests. Each command is a minimal example of one
// kind of container.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// requestTimeout is the limit of get and lookup.
const requestTimeout = 10 * time.Second

const usage = `usage:
  example serve ADDRESS DIR      answer HTTP with the files of DIR; /healthz says ok
  example get URL                fetch a page and print it
  example lookup NAME            print what a name resolves to; one that begins with _ is a service (SRV)
  example primes N               count the primes below N and exit
  example write FILE TEXT        write one file and exit
  example tick FILE SECONDS      write the time to FILE until SIGTERM`

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	command, args := args[0], args[1:]
	switch {
	case command == "serve" && len(args) == 2:
		return serve(ctx, args[0], args[1])
	case command == "get" && len(args) == 1:
		return get(ctx, args[0])
	case command == "lookup" && len(args) == 1:
		return lookup(ctx, args[0])
	case command == "primes" && len(args) == 1:
		return primes(args[0])
	case command == "write" && len(args) == 2:
		log.Printf("writing %s", args[0])
		return os.WriteFile(args[0], []byte(args[1]+"\n"), 0o644)
	case command == "tick" && len(args) == 2:
		return tick(ctx, args[0], args[1])
	}
	return errors.New(usage)
}

// serve serves until ctx is done, then finishes open requests within the pod's grace period.
func serve(ctx context.Context, address, dir string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	files := http.FileServerFS(os.DirFS(dir))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s %s", r.RemoteAddr, r.Method, r.URL.Path)
		// Files of a ConfigMap may change without a new timestamp, so they are not cached.
		r.Header.Del("If-Modified-Since")
		files.ServeHTTP(w, r)
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	}()
	host, _ := os.Hostname()
	log.Printf("%s: serving %s on %s", host, dir, address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", address, err)
	}
	return <-stopped
}

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, answer.Status)
	}
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func lookup(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if strings.HasPrefix(name, "_") {
		_, targets, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
		for _, t := range targets {
			fmt.Println(t.Target, t.Port)
		}
		return err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	for _, address := range addresses {
		fmt.Println(address)
	}
	return err
}

func primes(limit string) error {
	n, err := strconv.Atoi(limit)
	if err != nil || n < 0 {
		return fmt.Errorf("primes: %q is not a count", limit)
	}
	composite, found := make([]bool, n), 0
	for i := 2; i < n; i++ {
		if composite[i] {
			continue
		}
		found++
		for j := i * i; j < n; j += i {
			composite[j] = true
		}
	}
	log.Printf("%d primes below %d", found, n)
	return nil
}

// tick replaces the file by rename, so that a reader never sees half of it.
func tick(ctx context.Context, file, seconds string) error {
	every, err := strconv.Atoi(seconds)
	if err != nil || every <= 0 {
		return fmt.Errorf("tick: %q is not a number of seconds", seconds)
	}
	ticker := time.NewTicker(time.Duration(every) * time.Second)
	defer ticker.Stop()
	for {
		next := filepath.Join(filepath.Dir(file), ".next")
		if err := os.WriteFile(next, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o644); err != nil {
			return fmt.Errorf("tick: %w", err)
		}
		if err := os.Rename(next, file); err != nil {
			return fmt.Errorf("tick: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
