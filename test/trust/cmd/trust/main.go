// Command trust runs the tests of reliability, class by class, records their results in
// test/trust/results and docs/reliability.md, and prints them as one table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"swiftlet/test/trust"
)

func main() {
	class := flag.String("class", "", "run only this class")
	force := flag.Bool("force", false, "run also classes that passed on this commit")
	printOnly := flag.Bool("print", false, "run nothing, print the recorded results")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *class, *force, *printOnly); err != nil {
		fmt.Fprintln(os.Stderr, "trust:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, force, printOnly bool) error {
	root, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("find repository: %w", err)
	}
	classes := trust.Classes()
	if only != "" {
		class, err := trust.Find(only)
		if err != nil {
			return err
		}
		classes = []trust.Class{class}
	}
	if !printOnly {
		if err := runClasses(ctx, root, classes, force); err != nil {
			return err
		}
	}
	return report(root, classes)
}

// runClasses runs the classes that have no current result. It goes on after a failed class.
func runClasses(ctx context.Context, root string, classes []trust.Class, force bool) error {
	commit, err := trust.Commit(root)
	if err != nil {
		return err
	}
	for _, class := range classes {
		if err := ctx.Err(); err != nil {
			return err
		}
		last, err := trust.ReadResult(root, class.Name)
		if err != nil {
			return err
		}
		if last.Current(commit) && !force {
			fmt.Fprintf(os.Stderr, "%s: passed on this commit before\n", class.Name)
			continue
		}
		if err := runClass(ctx, root, class, commit); err != nil {
			return err
		}
	}
	return nil
}

// runClass runs a class and records its result. An interrupted class has none.
func runClass(ctx context.Context, root string, class trust.Class, commit string) error {
	dir := filepath.Join(root, "bin", "trust")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	log, err := os.Create(filepath.Join(dir, class.Name+".log"))
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	fmt.Fprintf(os.Stderr, "%s: running, output in %s\n", class.Name, log.Name())
	result := trust.Run(ctx, root, class, log)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run %s: %w", class.Name, err)
	}
	result.Commit = commit
	if result.Failure != "" {
		fmt.Fprintf(os.Stderr, "%s: failed: %s\n", class.Name, result.Failure)
	}
	return trust.WriteResult(root, result)
}

// report prints the table and writes the document. It fails if a class of the table did.
func report(root string, classes []trust.Class) error {
	var all, asked []trust.Result
	for _, class := range trust.Classes() {
		result, err := trust.ReadResult(root, class.Name)
		if err != nil {
			return err
		}
		all = append(all, result)
		for _, c := range classes {
			if c.Name == class.Name {
				asked = append(asked, result)
			}
		}
	}
	if err := trust.PrintTable(os.Stdout, asked); err != nil {
		return err
	}
	if err := trust.WriteDocument(root, all); err != nil {
		return err
	}
	var failed []error
	for _, r := range asked {
		if !r.Passed() {
			failed = append(failed, fmt.Errorf("class %s did not pass", r.Class))
		}
	}
	return errors.Join(failed...)
}
