#!/bin/sh
# Builds servers of backends from their Go modules: servers.sh FOLDER PROMETHEUS ALERTMANAGER VICTORIAMETRICS, with
# versions as v0.316.0. Each is built in a copy of its module, with the versions of modules that it was released with.
set -eu
mkdir -p "$1" build/servers
to=$(cd "$1" && pwd) from=$(cd build/servers && pwd)
export GOWORK=off GOFLAGS='-mod=mod -buildvcs=false'
go=${GO:-go}

# build MODULE VERSION PACKAGE...
build() {
	module=$1 version=$2
	shift 2
	cd "$from" && rm -rf source && mkdir source
	cp -R "$($go mod download -json "$module@$version" | sed -n 's/^.*"Dir": "\(.*\)".*/\1/p')/." source
	chmod -R u+w source
	cd source
	# Alertmanager embeds its pages, which are no part of its module.
	mkdir -p ui/app/dist && touch ui/app/dist/none
	for package in "$@"; do
		echo "    $module/$package $version"
		# Without the discoveries that ask clouds, which are most of Prometheus's modules. Programs of
		# Prometheus say as their version what the file VERSION has.
		$go build -tags remove_all_sd -ldflags="-s -w -X github.com/prometheus/common/version.Version=$(cat VERSION 2>/dev/null || true)" -o "$from/" "./$package"
	done
}
build github.com/prometheus/prometheus "$2" cmd/prometheus cmd/promtool
build github.com/prometheus/alertmanager "$3" cmd/alertmanager cmd/amtool
build github.com/VictoriaMetrics/VictoriaMetrics "$4" app/victoria-metrics app/vmalert
cd "$from" && rm -rf source
# As in Debian, so that the tests find it.
mv alertmanager prometheus-alertmanager
# All of them or none, so that a version is never mixed with another.
mv ./* "$to/"
