package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

// service is a unit with its drop-ins.
type service struct {
	command      string   // ExecStart
	variables    []string // Environment
	files        []string // EnvironmentFile; a leading dash marks an optional one
	restartDelay time.Duration
}

// directories of units. A file of a later one replaces a file of the same name.
var directories = []string{"usr/lib/systemd/system", "etc/systemd/system"}

// loadService reads a service's unit and drop-ins below root, in systemd's order.
func loadService(root, name string) (*service, error) {
	var paths []string
	for _, pattern := range []string{name + ".service", name + ".service.d/*.conf"} {
		found := map[string]string{} // path by file name
		for _, dir := range directories {
			matches, err := filepath.Glob(filepath.Join(root, dir, pattern))
			if err != nil {
				return nil, fmt.Errorf("find unit %s: %w", name, err)
			}
			for _, path := range matches {
				found[filepath.Base(path)] = path
			}
		}
		if paths == nil && len(found) == 0 {
			return nil, fmt.Errorf("find unit %s: %w", name, os.ErrNotExist)
		}
		for _, base := range slices.Sorted(maps.Keys(found)) {
			paths = append(paths, found[base])
		}
	}
	s := &service{restartDelay: 100 * time.Millisecond}
	for _, path := range paths {
		if err := s.read(path); err != nil {
			return nil, fmt.Errorf("read unit %s: %w", path, err)
		}
	}
	return s, nil
}

func (s *service) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	options, err := unit.DeserializeOptions(file)
	if err != nil {
		return err
	}
	for _, option := range options {
		if option.Section != "Service" {
			continue
		}
		if err := s.set(option.Name, option.Value); err != nil {
			return err
		}
	}
	return nil
}

// set applies an option. It rejects those that it would ignore.
func (s *service) set(name, value string) error {
	switch name {
	case "ExecStart":
		if value != "" && s.command != "" {
			return errors.New("a second ExecStart without a reset of the first")
		}
		s.command = value
	case "Environment":
		s.variables = append(s.variables, words(value)...)
	case "EnvironmentFile":
		s.files = append(s.files, value)
	case "RestartSec":
		delay, err := time.ParseDuration(value + "s")
		if err != nil {
			return err
		}
		s.restartDelay = delay
	case "Restart":
		if value != "always" {
			return fmt.Errorf("unsupported Restart=%s", value)
		}
	case "StartLimitInterval":
		if value != "0" {
			return fmt.Errorf("unsupported StartLimitInterval=%s", value)
		}
	default:
		return fmt.Errorf("unsupported option %s", name)
	}
	return nil
}

// environment returns the variables. Those of files override the unit's, as in systemd.
func (s *service) environment(root string) (map[string]string, error) {
	all := map[string]string{}
	lines := slices.Clone(s.variables)
	for _, file := range s.files {
		path, optional := strings.CutPrefix(file, "-")
		text, err := os.ReadFile(filepath.Join(root, path))
		if optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read environment: %w", err)
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	for _, line := range lines {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			all[key] = strings.Join(words(value), " ")
		}
	}
	return all, nil
}

// arguments returns the command line. A word $NAME becomes the words of the variable's value.
func (s *service) arguments(environment map[string]string) []string {
	var all []string
	for _, word := range words(s.command) {
		if name, ok := strings.CutPrefix(word, "$"); ok {
			all = append(all, strings.Fields(environment[name])...)
		} else {
			all = append(all, word)
		}
	}
	return all
}

// words splits text at spaces outside double quotes, and removes the quotes.
func words(text string) []string {
	var all []string
	for i, part := range strings.Split(text, `"`) {
		if quoted := i%2 == 1; quoted {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// searchPath is the PATH that systemd gives its services.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// variableList returns the environment of the service's process.
func variableList(environment map[string]string) []string {
	list := []string{searchPath}
	for key, value := range environment {
		list = append(list, key+"="+value)
	}
	return list
}
