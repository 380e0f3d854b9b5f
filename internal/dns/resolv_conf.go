package dns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxResolvConf bounds how much of a resolv.conf is read, in case the path is wrong.
const maxResolvConf = 10 << 20

// ResolvConf is the content of a resolv.conf.
type ResolvConf struct {
	Servers  []string
	Searches []string
	Options  []string
}

// ParseResolvConf parses a resolv.conf. Servers accumulate, the last search line wins, and
// options accumulate by name with the last value winning. It ignores unknown lines, as resolver
// libraries do.
func ParseResolvConf(r io.Reader) (ResolvConf, error) {
	var conf ResolvConf
	var errs []error
	at := map[string]int{}
	lines := bufio.NewScanner(io.LimitReader(r, maxResolvConf))
	lines.Buffer(nil, maxResolvConf+1)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(fields) < 2 {
				errs = append(errs, fmt.Errorf("line %d: nameserver list is empty", n))
				continue
			}
			conf.Servers = append(conf.Servers, fields[1])
		case "search":
			conf.Searches = searchDomains(fields[1:])
		case "options":
			for _, o := range fields[1:] {
				conf.Options = setOption(conf.Options, at, o)
			}
		}
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, err)
	}
	return conf, errors.Join(errs...)
}

// searchDomains drops the root domain and trailing dots, so that the same domain does not count
// twice against the limits.
func searchDomains(fields []string) []string {
	var domains []string
	for _, f := range fields {
		if f != "." {
			domains = append(domains, strings.TrimSuffix(f, "."))
		}
	}
	return domains
}

// setOption adds an option, or replaces the one of the same name in place. at has the index of each name: a pod
// can have any number of options.
func setOption(options []string, at map[string]int, option string) []string {
	name, _, _ := strings.Cut(option, ":")
	i, known := at[name]
	if !known {
		at[name] = len(options)
		return append(options, option)
	}
	options[i] = option
	return options
}

// readResolvConf reads the node's resolv.conf; an empty path means an empty configuration.
func readResolvConf(path string) (ResolvConf, error) {
	if path == "" {
		return ResolvConf{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return ResolvConf{}, fmt.Errorf("read resolv.conf: %w", err)
	}
	defer f.Close()
	conf, err := ParseResolvConf(f)
	if err != nil {
		return ResolvConf{}, fmt.Errorf("parse %s: %w", path, err)
	}
	return conf, nil
}
