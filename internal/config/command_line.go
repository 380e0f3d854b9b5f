package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// commandLine is a flag set with the configuration field that each flag sets and the heading of
// the help that lists it.
type commandLine struct {
	set    *pflag.FlagSet
	fields map[string]string // flag → field path
	groups map[string]string // flag → heading
	order  []string          // headings in the order of their first use
}

func newCommandLine() *commandLine {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.SetOutput(io.Discard) // errors and notices are returned instead
	set.SortFlags = true
	return &commandLine{set: set, fields: map[string]string{}, groups: map[string]string{}}
}

// section adds flags under a heading of the help.
type section struct {
	*commandLine
	heading string
}

func (c *commandLine) under(heading string) section {
	if !slices.Contains(c.order, heading) {
		c.order = append(c.order, heading)
	}
	return section{c, heading}
}

// notDeprecated are the flags that set a field of the configuration file but are not deprecated in
// favor of it.
var notDeprecated = map[string]bool{
	"v": true, "vmodule": true, "log-flush-frequency": true, "provider-id": true, "fail-cgroupv1": true,
}

const useConfigFile = "set it in the file given by --config"

func (s section) register(name, field string) {
	s.groups[name] = s.heading
	if field == "" {
		return
	}
	s.fields[name] = field
	if !notDeprecated[name] {
		s.deprecate(name, useConfigFile)
	}
}

// deprecate marks a flag as deprecated. Unlike pflag.MarkDeprecated it does not hide the flag.
func (c *commandLine) deprecate(name, instead string) { c.set.Lookup(name).Deprecated = instead }

func (s section) bool(name, field string, p *bool, help string) {
	s.set.BoolVar(p, name, *p, help)
	s.register(name, field)
}

func (s section) int32(name, field string, p *int32, help string) {
	s.set.Int32Var(p, name, *p, help)
	s.register(name, field)
}

func (s section) int64(name, field string, p *int64, help string) {
	s.set.Int64Var(p, name, *p, help)
	s.register(name, field)
}

func (s section) string(name, field string, p *string, help string) {
	s.set.StringVar(p, name, *p, help)
	s.register(name, field)
}

func (s section) strings(name, field string, p *[]string, help string) {
	s.set.StringSliceVar(p, name, *p, help)
	s.register(name, field)
}

func (s section) duration(name, field string, p *time.Duration, help string) {
	s.set.DurationVar(p, name, *p, help)
	s.register(name, field)
}

func (s section) stringMap(name, field string, p *map[string]string, help string) {
	s.value(name, field, cliflag.NewMapStringString(p), help)
}

func (s section) value(name, field string, v pflag.Value, help string) {
	s.set.Var(v, name, help)
	s.register(name, field)
}

// parse parses the arguments into the bound values.
func (c *commandLine) parse(args []string) error {
	err := c.set.Parse(args)
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("--%s is not a flag of the kubelet%s", name, c.suggestion(name))
	case err != nil:
		return fmt.Errorf("read command line: %w", err)
	case c.set.NArg() > 0:
		return fmt.Errorf("read command line: %q is neither a flag nor a flag's value", c.set.Arg(0))
	}
	return nil
}

func (c *commandLine) suggestion(name string) string {
	hint := DidYouMean(name, maps.Keys(c.groups))
	return strings.Replace(hint, "did you mean ", "did you mean --", 1)
}

// changed lists the flags of the command line.
func (c *commandLine) changed() []*pflag.Flag {
	var flags []*pflag.Flag
	c.set.Visit(func(f *pflag.Flag) { flags = append(flags, f) })
	return flags
}

// secretFlags may contain credentials, such as the headers for static pods.
var secretFlags = map[string]bool{"manifest-url-header": true}

// values returns all flags as text, with defaults for those not on the command line.
func (c *commandLine) values() map[string]string {
	values := map[string]string{}
	c.set.VisitAll(func(f *pflag.Flag) {
		values[f.Name] = f.Value.String()
		if secretFlags[f.Name] && f.Changed {
			values[f.Name] = "CLASSIFIED"
		}
	})
	return values
}

// recordOrigins records the fields that the command line sets.
func (c *commandLine) recordOrigins(origins Origins, flagGates map[string]bool) {
	for _, f := range c.changed() {
		field := c.fields[f.Name]
		switch {
		case field == "":
		case f.Name == "feature-gates": // merged by key
			for name := range flagGates {
				origins.set(join(field, name), Origin{Flag: f.Name})
			}
		default:
			origins.set(field, Origin{Flag: f.Name})
		}
	}
}

// ineffective lists flags that have no effect.
func (c *commandLine) ineffective() (notices []string) {
	for _, f := range c.changed() {
		if reason := c.whyIneffective(f.Name); reason != "" {
			notices = append(notices, fmt.Sprintf("--%s has no effect: %s", f.Name, reason))
		}
	}
	return notices
}

// deprecated lists flags that have an effect and are deprecated.
func (c *commandLine) deprecated() (notices []string) {
	var better []string
	for _, f := range c.changed() {
		switch {
		case f.Deprecated == "" || c.whyIneffective(f.Name) != "":
		case f.Deprecated == useConfigFile:
			better = append(better, "--"+f.Name)
		default:
			notices = append(notices, fmt.Sprintf("--%s is deprecated: %s", f.Name, f.Deprecated))
		}
	}
	if len(better) > 0 {
		notices = append(notices, "deprecated flags, better set in the file given by --config: "+strings.Join(better, " "))
	}
	return notices
}
