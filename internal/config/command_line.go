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

// commandLine is the flag set together with what pflag cannot hold: the field of the
// configuration that each flag sets, and the heading it stands under in the help.
type commandLine struct {
	set    *pflag.FlagSet
	fields map[string]string // flag → field path
	groups map[string]string // flag → heading
	order  []string          // headings as they were first used
}

func newCommandLine() *commandLine {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.SetOutput(io.Discard) // what pflag would print is returned as errors and notices
	set.SortFlags = true
	return &commandLine{set: set, fields: map[string]string{}, groups: map[string]string{}}
}

// section adds flags under one heading of the help.
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

// notDeprecated are the flags that set a field of the configuration file and yet are not
// deprecated in favour of it.
var notDeprecated = map[string]bool{
	"v": true, "vmodule": true, "log-flush-frequency": true, "provider-id": true, "fail-cgroupv1": true,
	"feature-gates": true, "tls-cipher-suites": true,
}

const useConfigFile = "set it in the file given by --config"

func (s section) added(name, field string) {
	s.groups[name] = s.heading
	if field == "" {
		return
	}
	s.fields[name] = field
	if !notDeprecated[name] {
		s.deprecate(name, useConfigFile)
	}
}

// deprecate marks the flag without hiding it from the help, unlike pflag's own method.
func (c *commandLine) deprecate(name, instead string) { c.set.Lookup(name).Deprecated = instead }

func (s section) bool(name, field string, p *bool, help string) {
	s.set.BoolVar(p, name, *p, help)
	s.added(name, field)
}

func (s section) int32(name, field string, p *int32, help string) {
	s.set.Int32Var(p, name, *p, help)
	s.added(name, field)
}

func (s section) int64(name, field string, p *int64, help string) {
	s.set.Int64Var(p, name, *p, help)
	s.added(name, field)
}

func (s section) string(name, field string, p *string, help string) {
	s.set.StringVar(p, name, *p, help)
	s.added(name, field)
}

func (s section) strings(name, field string, p *[]string, help string) {
	s.set.StringSliceVar(p, name, *p, help)
	s.added(name, field)
}

func (s section) duration(name, field string, p *time.Duration, help string) {
	s.set.DurationVar(p, name, *p, help)
	s.added(name, field)
}

func (s section) stringMap(name, field string, p *map[string]string, help string) {
	s.value(name, field, cliflag.NewMapStringString(p), help)
}

func (s section) value(name, field string, v pflag.Value, help string) {
	s.set.Var(v, name, help)
	s.added(name, field)
}

// parse reads the arguments into the bound values.
func (c *commandLine) parse(args []string) error {
	err := c.set.Parse(args)
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("--%s is not a flag of the kubelet%s", name, c.nearest(name))
	case err != nil:
		return fmt.Errorf("read command line: %w", err)
	case c.set.NArg() > 0:
		return fmt.Errorf("read command line: %q is neither a flag nor a flag's value", c.set.Arg(0))
	}
	return nil
}

func (c *commandLine) nearest(name string) string {
	hint := didYouMean(name, maps.Keys(c.groups))
	return strings.Replace(hint, "did you mean ", "did you mean --", 1)
}

// given yields the flags that were on the command line.
func (c *commandLine) given() []*pflag.Flag {
	var flags []*pflag.Flag
	c.set.Visit(func(f *pflag.Flag) { flags = append(flags, f) })
	return flags
}

// secretFlags may hold credentials: headers that fetch static pods.
var secretFlags = map[string]bool{"manifest-url-header": true}

// values are all flags, given or not, as text.
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

// record notes the fields that the command line has set.
func (c *commandLine) record(origins Origins, gatesOfFlags map[string]bool) {
	for _, f := range c.given() {
		field := c.fields[f.Name]
		switch {
		case field == "":
		case f.Name == "feature-gates": // merged by key
			for name := range gatesOfFlags {
				origins.set(join(field, name), Origin{Flag: f.Name})
			}
		default:
			origins.set(field, Origin{Flag: f.Name})
		}
	}
}

// notices tells about flags that work no more, or will not for long.
func (c *commandLine) notices() (notices []string) {
	var deprecated []string
	for _, f := range c.given() {
		if why, ok := withoutEffect[f.Name]; ok {
			notices = append(notices, fmt.Sprintf("--%s has no effect: %s", f.Name, why))
		} else if f.Deprecated == useConfigFile {
			deprecated = append(deprecated, "--"+f.Name)
		} else if f.Deprecated != "" {
			notices = append(notices, fmt.Sprintf("--%s is deprecated: %s", f.Name, f.Deprecated))
		}
	}
	if len(deprecated) > 0 {
		notices = append(notices, "deprecated flags, better set in the file given by --config: "+strings.Join(deprecated, " "))
	}
	return notices
}
