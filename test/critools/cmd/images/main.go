// Images writes the images that critest pulls into a directory, as Docker archives, and prints the name and
// the file of each: `go run ./test/critools/cmd/images DIR`.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"swiftlet/test/conformance"
	"swiftlet/test/images"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./test/critools/cmd/images DIR")
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(ctx context.Context, dir string) error {
	programs, err := conformance.FindPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "critest-images")
	if err != nil {
		return fmt.Errorf("make image cache: %w", err)
	}
	defer os.RemoveAll(cache)
	own, err := images.Build(ctx, cache)
	if err != nil {
		return err
	}
	all, err := programs.CritestImages(ctx, own.PauseBin)
	if err != nil {
		return err
	}
	for name, image := range all {
		file := filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(name)+".tar")
		if err := images.Write(file, name, image); err != nil {
			return err
		}
		fmt.Println(name, file)
	}
	return nil
}
