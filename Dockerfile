# The study with the CPU build of torch: docker build -t heads-hypothesis . && docker run -it -p 8888:8888 heads-hypothesis
FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends git make perl && rm -rf /var/lib/apt/lists/*
WORKDIR /study
# The packages first, so that a change of the study does not install them again.
COPY Makefile pyproject.toml requirements.lock ./
COPY analysis/study/machine.py analysis/study/machine.py
COPY analysis/__init__.py analysis/__init__.py
COPY README.md ./
RUN make install TORCH=cpu
COPY . .
CMD ["make", "notebook"]
