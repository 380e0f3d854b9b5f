package config

import (
	"fmt"
	"maps"
	"slices"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Config is the complete, validated configuration.
type Config struct {
	Flags    Flags
	Kubelet  kubelet.KubeletConfiguration
	Features Features
	gates    gates
	Origins  Origins
	// FlagValues are the values of all flags, regardless of configuration files.
	FlagValues map[string]string
	// Notices are warnings to log at startup: ignored fields, settings without effect, deprecated
	// flags, insecure settings.
	Notices []string
	// Departures are the settings that have another value or effect than in the reference kubelet.
	Departures []string
	// Action is what the command line requests. Unless it is Run, other fields are not set.
	Action Action

	lenient bool
	files   []string // that were read
}

// Action is what a command line requests.
type Action int

const (
	Run Action = iota
	Help
	Version
	VersionRaw
)

func (f *Flags) action() Action {
	switch {
	case f.help:
		return Help
	case f.version == "true":
		return Version
	case f.version == "raw":
		return VersionRaw
	}
	return Run
}

// Load reads the command line and the files that it names. Drop-ins override the file, and flags
// override both; feature gates are merged by name. An error of type Errors lists every invalid value
// with its origin.
func Load(args []string) (*Config, error) { return load(args, false) }

// LoadLenient is Load for a kubelet that replaces the reference kubelet. It starts with the files
// with which the reference kubelet starts: an unknown or duplicate field, and an address that
// cannot be parsed, is a notice instead of an error.
func LoadLenient(args []string) (*Config, error) { return load(args, true) }

func load(args []string, lenient bool) (*Config, error) {
	// The first parse finds the files, and the gates that some defaults depend on.
	flags := defaultFlags()
	scratch := flagDefaults(nil)
	first := bind(&flags, &scratch)
	if err := first.parse(args); err != nil {
		return nil, err
	}
	if action := flags.action(); action != Run {
		return &Config{Action: action}, nil
	}
	flagGates := scratch.FeatureGates

	c := &Config{Flags: defaultFlags(), Origins: Origins{}, FlagValues: first.values(), lenient: lenient}
	errs, err := c.readFiles(&flags, flagGates)
	if err != nil {
		return nil, err
	}
	line := bind(&c.Flags, &c.Kubelet)
	fromFiles := c.Kubelet.FeatureGates
	if err := line.parse(args); err != nil {
		return nil, err
	}
	c.Kubelet.FeatureGates = mergeGates(fromFiles, flagGates)
	line.recordOrigins(c.Origins, flagGates)
	if err := c.Flags.resolvePaths(); err != nil {
		return nil, err
	}
	return c.finish(line, errs)
}

// finish resolves the gates and validates the configuration.
func (c *Config) finish(line *commandLine, errs Errors) (*Config, error) {
	g, problems, notices := resolveGates(c.Kubelet.FeatureGates)
	problems = append(problems, validate(&c.Kubelet, g)...)
	problems = append(problems, validateFlags(&c.Flags)...)
	if errs = append(errs, c.ignore(locate(problems, c.Origins), ignoredValue)...); len(errs) > 0 {
		return nil, errs.sorted()
	}
	c.Features, c.gates = g.features(), g
	flags, fields, off := line.ineffective(), c.ineffectiveFields(), g.ineffective()
	c.Notices = slices.Concat(c.Notices, flags, line.deprecated(), notices, fields, off, securityNotices(&c.Kubelet))
	c.Departures = slices.Concat(flags, fields, off, c.securedDefaults())
	return c, nil
}

// Files returns the configuration files.
func (c *Config) Files() []string { return c.files }

// readFiles sets c.Kubelet from the configuration file and the drop-ins, or else to the defaults of
// flags. errs lists invalid fields; err means that a file could not be read.
func (c *Config) readFiles(flags *Flags, flagGates map[string]bool) (errs Errors, err error) {
	c.Kubelet = flagDefaults(gatesWith(nil, flagGates))
	if flags.ConfigFile != "" {
		c.files = append(c.files, flags.ConfigFile)
		if errs, err = c.readFile(flags.ConfigFile, flagGates); err != nil {
			return nil, err
		}
	}
	if flags.ConfigDir != "" {
		files, skipped, err := findDropins(flags.ConfigDir)
		if err != nil {
			return nil, err
		}
		for _, file := range skipped {
			c.Notices = append(c.Notices, fmt.Sprintf("%s is not read: its name does not end in .conf", file))
		}
		c.files = append(c.files, files...)
		dropinErrs, err := applyDropins(&c.Kubelet, files, c.Origins, flagGates)
		if err != nil {
			return nil, err
		}
		errs = append(errs, c.ignore(dropinErrs, unknownField)...)
	}
	return errs, nil
}

func (c *Config) readFile(name string, flagGates map[string]bool) (Errors, error) {
	d, errs, err := readDocument(name)
	if err != nil {
		return nil, err
	}
	if d == nil { // the file cannot be parsed, so nothing else is checked
		return nil, errs
	}
	var kc kubelet.KubeletConfiguration
	if err := decodeStrict(name, d.values, &kc); err != nil {
		return nil, err
	}
	applyDefaults(&kc, gatesWith(&kc, flagGates))
	defaultEviction(&kc)
	if err := resolvePaths(&kc, name); err != nil {
		return nil, err
	}
	c.Kubelet = kc
	d.recordOrigins(c.Origins)
	return c.ignore(errs, unknownField, duplicateField), nil
}

// gatesWith resolves the gates that defaults depend on. finish reports their problems.
func gatesWith(kc *kubelet.KubeletConfiguration, flagGates map[string]bool) gates {
	var inFile map[string]bool
	if kc != nil {
		inFile = kc.FeatureGates
	}
	g, _, _ := resolveGates(mergeGates(inFile, flagGates))
	return g
}

// mergeGates merges gates by name. Those of flags override those of files.
func mergeGates(files, flags map[string]bool) map[string]bool {
	if len(files)+len(flags) == 0 {
		return nil
	}
	merged := maps.Clone(files)
	if merged == nil {
		merged = map[string]bool{}
	}
	maps.Copy(merged, flags)
	return merged
}
