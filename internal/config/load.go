package config

import (
	"fmt"
	"maps"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Config is the whole configuration, complete and checked.
type Config struct {
	Flags    Flags
	Kubelet  kubelet.KubeletConfiguration
	Features Features
	gates    gates
	Origins  Origins
	// FlagValues are all flags as the command line leaves them, whatever files say.
	FlagValues map[string]string
	// Notices are remarks for the log, each to be made once: flags without effect,
	// deprecated ones, settings that open the node.
	Notices []string
	// Asked is what the command line wants; unless it is Run, the rest is not filled in.
	Asked Request
}

// Request is what a command line asks for.
type Request int

const (
	Run Request = iota
	Help
	Version
	VersionRaw
)

func (f *Flags) request() Request {
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

// Load reads the command line and the files it names. Defaults give way to the file, the
// file to drop-ins, drop-ins to flags; feature gates are merged one by one. An error of
// type Errors names every wrong value with its place.
func Load(args []string) (*Config, error) {
	// A first reading finds the files and the gates, which decide some defaults.
	flags := defaultFlags()
	scratch := defaultsOfFlags(nil)
	first := bind(&flags, &scratch)
	if err := first.parse(args); err != nil {
		return nil, err
	}
	if asked := flags.request(); asked != Run {
		return &Config{Asked: asked}, nil
	}
	named := scratch.FeatureGates

	c := &Config{Flags: defaultFlags(), Origins: Origins{}, FlagValues: first.values()}
	wrong, err := c.readFiles(&flags, named)
	if err != nil {
		return nil, err
	}
	line := bind(&c.Flags, &c.Kubelet)
	fromFiles := c.Kubelet.FeatureGates
	if err := line.parse(args); err != nil {
		return nil, err
	}
	c.Kubelet.FeatureGates = mergeGates(fromFiles, named)
	line.record(c.Origins, named)
	return c.finish(line, wrong)
}

// finish checks what was read and resolves the gates.
func (c *Config) finish(line *commandLine, wrong Errors) (*Config, error) {
	g, problems, notices := resolveGates(c.Kubelet.FeatureGates)
	problems = append(problems, validate(&c.Kubelet, g)...)
	problems = append(problems, validateFlags(&c.Flags)...)
	if wrong = append(wrong, locate(problems, c.Origins)...); len(wrong) > 0 {
		return nil, wrong.sorted()
	}
	c.Features, c.gates = g.features(), g
	c.Notices = append(c.Notices, line.notices()...)
	c.Notices = append(c.Notices, notices...)
	c.Notices = append(c.Notices, g.vain()...)
	c.Notices = append(c.Notices, openings(&c.Kubelet)...)
	return c, nil
}

// readFiles fills c.Kubelet from the configuration file and the drop-ins, or else with
// the defaults of the flags. Wrong fields are returned together; an error means that a
// file could not be read at all.
func (c *Config) readFiles(flags *Flags, named map[string]bool) (wrong Errors, err error) {
	c.Kubelet = defaultsOfFlags(gatesWith(nil, named))
	if flags.ConfigFile != "" {
		if wrong, err = c.readFile(flags.ConfigFile, named); err != nil {
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
		more, err := applyDropins(&c.Kubelet, files, c.Origins, named)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, more...)
	}
	return wrong, nil
}

func (c *Config) readFile(name string, named map[string]bool) (Errors, error) {
	d, wrong, err := readDocument(name)
	if err != nil {
		return nil, err
	}
	if d == nil { // nothing in it can be relied on, so no more is checked
		return nil, wrong
	}
	var kc kubelet.KubeletConfiguration
	if err := decodeStrict(name, d.values, &kc); err != nil {
		return nil, err
	}
	applyDefaults(&kc, gatesWith(&kc, named))
	defaultEviction(&kc)
	if err := absolute(&kc, name); err != nil {
		return nil, err
	}
	c.Kubelet = kc
	d.record(c.Origins)
	return wrong, nil
}

// gatesWith resolves the gates that decide defaults; what is wrong with them is told later.
func gatesWith(kc *kubelet.KubeletConfiguration, named map[string]bool) gates {
	var inFile map[string]bool
	if kc != nil {
		inFile = kc.FeatureGates
	}
	g, _, _ := resolveGates(mergeGates(inFile, named))
	return g
}

// mergeGates lets the flags' gates win over the files' one by one.
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
