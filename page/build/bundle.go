package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// bundle returns the files of the page by their path below /ui/: index.html, and all others in assets/ under
// names with a hash, so that browsers may keep them.
func bundle(page string) (map[string][]byte, error) {
	page, err := filepath.Abs(page)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:     page,
		EntryPoints:       []string{"src/app.jsx"},
		Outdir:            "assets",
		EntryNames:        "[name]-[hash]",
		ChunkNames:        "[name]-[hash]",
		Bundle:            true,
		Splitting:         true,
		Format:            api.FormatESModule,
		Target:            api.ES2022,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		LegalComments:     api.LegalCommentsEndOfFile,
		Plugins:           []api.Plugin{strictStyles(page)},
		LogLevel:          api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New("bundle: " + strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage}), "\n"))
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		files["assets/"+filepath.Base(f.Path)] = f.Contents
	}
	notices, err := licences(page)
	if err != nil {
		return nil, err
	}
	files[fmt.Sprintf("assets/licences-%08X.txt", crc32.ChecksumIEEE(notices))] = notices
	if files["index.html"], err = index(page, files); err != nil {
		return nil, err
	}
	return files, nil
}

// index is src/index.html with the names that have a hash.
func index(page string, files map[string][]byte) ([]byte, error) {
	html, err := os.ReadFile(filepath.Join(page, "src/index.html"))
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	for name := range files {
		plain, _, _ := strings.Cut(name, "-")
		html = bytes.ReplaceAll(html, []byte(`"`+plain+filepath.Ext(name)+`"`), []byte(`"`+name+`"`))
	}
	return html, nil
}
