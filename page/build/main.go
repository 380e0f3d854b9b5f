package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	page := flag.String("page", "..", "directory of package.json and src")
	out := flag.String("out", "../../internal/page/assets/dist", "directory to write, whose content is replaced")
	flag.Parse()
	if err := run(*page, *out); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(page, out string) error {
	files, err := bundle(page)
	if err != nil {
		return err
	}
	size, err := write(files, out)
	if err != nil {
		return err
	}
	fmt.Printf("%d files, %d bytes compressed\n", len(files), size)
	return nil
}
